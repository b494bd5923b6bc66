/**
 * What has to be had before anybody is asked: the authorities, the credentials, and the bytes of
 * the request. Knows nothing of connections.
 *
 * Always: files are read anew for each probe, since they may have changed; what is not usable is
 * told before a name is looked up. The same settings without a file make the same request, which is
 * made once. State after a crash: none.
 */
import type { ProbeVerdict } from "../core/probe-result.ts";
import type { HttpDetails } from "../core/probe-settings.ts";
import { holdsCertificate, readGivenFile } from "../os/given-file.ts";
import { renderAuthorization, renderBasic, renderRequest } from "./request.ts";

/** What is asked, and over what. */
export interface HttpRequest {
  /** Of the Host header. */
  readonly host: string;
  readonly path: string;
  readonly userInfo: string | undefined;
  /** Undefined: without TLS. */
  readonly tlsHost: string | undefined;
  readonly http: HttpDetails;
  readonly timeoutMs: number;
}

type Failed = { readonly kind: "failed" } & ProbeVerdict;

export interface Prepared {
  readonly kind: "prepared";
  readonly bytes: Buffer;
  /** PEM, of what is to be trusted instead of the usual ones. */
  readonly ca: string | undefined;
}

export function prepare(request: HttpRequest): Prepared | Failed {
  const { http, tlsHost } = request;
  const ca = readIfGiven(tlsHost === undefined ? undefined : http.caFile);
  if (ca.kind === "failed") return ca;
  if (ca.text !== undefined && !holdsCertificate(ca.text)) {
    return unusable(`${http.caFile} holds no certificate`);
  }
  const rendered = render(request);
  return rendered.kind === "failed"
    ? rendered
    : { kind: "prepared", bytes: rendered.bytes, ca: ca.text };
}

interface Rendered {
  readonly kind: "rendered";
  readonly bytes: Buffer;
}

function render(request: HttpRequest): Rendered | Failed {
  const { http, userInfo } = request;
  if (http.credentialsFile === undefined) {
    const basic = userInfo === undefined ? undefined : renderBasic(userInfo);
    return findKept(request) ?? keep(request, renderWith(basic, request));
  }
  const file = readIfGiven(http.credentialsFile);
  if (file.kind === "failed") return file;
  return renderWith(renderAuthorization(file.text ?? ""), request);
}

function renderWith(
  authorization: string | undefined,
  { host, path, http }: HttpRequest,
): Rendered | Failed {
  const rendered = renderRequest({ host, path, authorization }, http);
  if (rendered.kind === "refused") return unusable(rendered.found);
  return { kind: "rendered", bytes: rendered.bytes };
}

interface Kept extends Pick<HttpRequest, "host" | "path" | "userInfo"> {
  readonly rendered: Rendered;
}

const MOST_KEPT_BYTES = 65_536;
const kept = new WeakMap<HttpDetails, Kept>();

function findKept({ http, host, path, userInfo }: HttpRequest): Rendered | undefined {
  const known = kept.get(http);
  const isSame = known?.host === host && known.path === path && known.userInfo === userInfo;
  return isSame ? known.rendered : undefined;
}

function keep(request: HttpRequest, rendered: Rendered | Failed): Rendered | Failed {
  if (rendered.kind === "rendered" && rendered.bytes.length <= MOST_KEPT_BYTES) {
    const { host, path, userInfo } = request;
    kept.set(request.http, { host, path, userInfo, rendered });
  }
  return rendered;
}

function readIfGiven(
  path: string | undefined,
): { readonly kind: "read"; readonly text: string | undefined } | Failed {
  if (path === undefined) return { kind: "read", text: undefined };
  const file = readGivenFile(path);
  return file.kind === "refused" ? unusable(file.found) : { kind: "read", text: file.text };
}

export function unusable(detail: string): Failed {
  return { kind: "failed", because: "unusable-settings", detail };
}
