/**
 * The options that say what a probe by HTTP sends, and which answers to it are good.
 *
 * A part of the one table in options-table.ts. Always: what may be a secret is hidden where a value
 * is shown.
 */

import { DEFAULT_HTTP } from "../core/probe-settings.ts";
import { setting, switchSetting } from "./probe-setting.ts";
import type { ProbeSettingRow } from "./probe-setting.ts";
import * as probe from "./probe-values.ts";
import * as values from "./values.ts";

export const ANSWER_ROWS: readonly ProbeSettingRow[] = [
  setting(
    { flag: "--probe-expect-status", kind: "statuses", use: "http" },
    {
      valueName: "LIST",
      example: "200-299,302",
      defaultText: "200-299",
      help: "Which statuses of HTTP are good. Redirects are not followed.",
    },
    (text) => values.mapped(probe.parseStatuses(text), (expectStatus) => ({ expectStatus })),
  ),
  setting(
    { flag: "--probe-expect-body", kind: "text", use: "http" },
    {
      valueName: "REGEX",
      example: "^ok",
      defaultText: "any body",
      help: "The body of a good answer matches this.",
    },
    (text) => values.mapped(probe.parsePattern(text), (expectBody) => ({ expectBody })),
  ),
  setting(
    { flag: "--probe-expect-json", kind: "texts", use: "http" },
    {
      valueName: "PATH=VALUE",
      example: "checks[0].state=ready",
      defaultText: "any body",
      help:
        "The body of a good answer is JSON that has this value there, such as " +
        "checks[0].state=ready. May be given more than once.",
    },
    (text) =>
      values.mapped(probe.parseJsonWanted(text), (expectation) => ({ expectJson: [expectation] })),
  ),
  setting(
    { flag: "--probe-max-bytes", kind: "size", use: "http" },
    {
      valueName: "SIZE",
      example: "64KiB",
      defaultText: "1MiB",
      help: "An answer with a longer body is not good.",
    },
    (text) => values.mapped(probe.parseMaxBytes(text), (maxBytes) => ({ maxBytes })),
  ),
];

export const REQUEST_ROWS: readonly ProbeSettingRow[] = [
  setting(
    { flag: "--probe-method", kind: "text", use: "http" },
    {
      valueName: "METHOD",
      example: "POST",
      defaultText: DEFAULT_HTTP.method,
      help: "The method of the request.",
    },
    (text) => values.mapped(probe.parseMethod(text), (method) => ({ method })),
  ),
  setting(
    { flag: "--probe-body", kind: "text", use: "http" },
    {
      valueName: "TEXT|file:PATH",
      example: "file:/etc/watchdog/canary.json",
      defaultText: "none",
      help: "What the request sends, or the file with it.",
      hide: probe.hideUnlessFile,
    },
    probe.parseBody,
  ),
  setting(
    { flag: "--probe-header", kind: "texts", use: "http" },
    {
      valueName: "'NAME: VALUE'",
      example: "Accept: application/json",
      defaultText: "none",
      help:
        "Send this header; a VALUE of file:PATH is read from there, so that no secret stands on " +
        "the line. May be given more than once.",
      hide: probe.hideHeader,
    },
    (text) => values.mapped(probe.parseHeader(text), (header) => ({ headers: [header] })),
  ),
  setting(
    { flag: "--probe-credentials", kind: "text", use: "http" },
    {
      valueName: "file:PATH",
      example: "file:/etc/watchdog/probe-login",
      defaultText: "none",
      help: "Log in with what this file holds: USER:PASSWORD, or the value of Authorization.",
      hide: probe.hideUnlessFile,
    },
    (text) => values.mapped(probe.parseFileWord(text), (credentialsFile) => ({ credentialsFile })),
  ),
  setting(
    { flag: "--probe-ca-file", kind: "path", use: "tls" },
    {
      valueName: "FILE",
      example: "/etc/watchdog/ca.pem",
      defaultText: "those of watchdog",
      help: "Trust the certificates of this PEM file, and no others.",
    },
    (text) => values.mapped(values.parsePath(text), (caFile) => ({ caFile })),
  ),
  switchSetting("--probe-insecure", "tls", {
    help: "Do not look at the certificate of the other side.",
    change: (isInsecure) => ({ isInsecure }),
  }),
  switchSetting("--probe-proxy", "proxy", {
    help: "Go through the proxy that http_proxy, https_proxy, all_proxy and no_proxy name.",
    change: (usesProxy) => ({ usesProxy }),
  }),
];
