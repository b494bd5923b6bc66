/**
 * What probes are told by files, before anything is started: values of headers and bodies are read,
 * and authorities and credentials looked at, which each probe reads again.
 *
 * Always: after it no relative path is left, because others who share a circuit stand in other
 * directories; whatever is not as it must be is a failure that names the path and nothing of what
 * the file holds. State after a crash: none.
 */
import { isAbsolute, resolve } from "node:path";
import { createSecureContext } from "node:tls";
import { WatchdogError } from "../core/errors.ts";
import { checkProbeSettings } from "../core/probe-check.ts";
import type { HttpDetails, ProbeHeader, ProbeSettings } from "../core/probe-settings.ts";
import { holdsCertificate, readGivenFile } from "../os/given-file.ts";

/**
 * The settings with what their files hold. The name of a circuit depends on the paths, so that it
 * is to be asked for afterwards.
 *
 * @throws WatchdogError "config.refused" (78)
 */
export function readProbeFiles(probes: readonly ProbeSettings[]): readonly ProbeSettings[] {
  return probes.map((settings) => {
    const http = readDetails(settings.http);
    const read = { ...settings, http };
    const [finding] = checkProbeSettings(read);
    if (finding !== undefined) throw refuse(`${finding.found}, expected ${finding.expected}`);
    return read;
  });
}

function readDetails(http: HttpDetails): HttpDetails {
  const { caFile, credentialsFile, bodyFile } = http;
  const read = {
    ...http,
    caFile: caFile === undefined ? undefined : toAbsolute(caFile),
    credentialsFile: credentialsFile === undefined ? undefined : toAbsolute(credentialsFile),
    bodyFile: bodyFile === undefined ? undefined : toAbsolute(bodyFile),
    headers: http.headers.map(readHeader),
  };
  if (read.caFile !== undefined) checkAuthorities(read.caFile);
  if (read.credentialsFile !== undefined) checkCredentials(read.credentialsFile);
  return read.bodyFile === undefined ? read : { ...read, body: readText(read.bodyFile) };
}

function readHeader(header: ProbeHeader): ProbeHeader {
  if (header.file === undefined) return header;
  const file = toAbsolute(header.file);
  return { ...header, file, value: readLine(file) };
}

/** TLS takes an empty text for none, and would then trust those that it brings with it. */
function checkAuthorities(path: string): void {
  const ca = readText(path);
  try {
    createSecureContext({ ca });
  } catch {
    throw refuse(`${path} holds no certificate that can be read`); // Errors of PEM and ASN.1
  }
  if (!holdsCertificate(ca)) throw refuse(`${path} holds no certificate, expected PEM`);
}

function checkCredentials(path: string): void {
  const line = readLine(path);
  if (line.trim() === "") throw refuse(`${path} is empty, expected USER:PASSWORD or one value`);
}

/** Editors end the last line. */
function readLine(path: string): string {
  const line = readText(path).replace(/\r?\n$/, "");
  if (!/[\0\r\n]/.test(line)) return line;
  throw refuse(`${path} holds more than one line of text, expected one`);
}

function readText(path: string): string {
  const file = readGivenFile(path);
  if (file.kind === "refused") throw refuse(file.found);
  return file.text;
}

function toAbsolute(path: string): string {
  if (isAbsolute(path)) return path;
  try {
    return resolve(path);
  } catch (cause) {
    throw refuse(`${path} is relative to a directory that is gone`, cause); // ENOENT, getcwd(3)
  }
}

function refuse(message: string, cause?: unknown): WatchdogError {
  return new WatchdogError("config.refused", `probe: ${message}`, {
    hint: "watchdog probe --help",
    cause,
  });
}
