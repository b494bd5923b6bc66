/**
 * TLS over a connection that stands. Always: the certificate is looked at, its chain and its name,
 * unless the settings say otherwise; no variable of the environment changes that. No session is
 * taken up again: every handshake is a whole one. State after a crash: none.
 */
import { isIP, type Socket } from "node:net";
import { connect, rootCertificates, type TLSSocket } from "node:tls";
import type { ProbeVerdict } from "../core/probe-result.ts";
import type { TimeLimit } from "./time-limit.ts";

export type Secured =
  | { readonly kind: "secured"; readonly socket: TLSSocket }
  | ({ readonly kind: "failed" } & ProbeVerdict);

export interface SecureSettings {
  /** A name or an address, without brackets. */
  readonly host: string;
  /** PEM: instead of the authorities that Bun brings with it. */
  readonly ca: string | undefined;
  readonly isInsecure: boolean;
}

export function secure(
  socket: Socket,
  settings: SecureSettings,
  limit: TimeLimit,
): Promise<Secured> {
  const { host } = settings;
  return new Promise((resolve) => {
    const secured = begin(socket, settings);
    if (secured === undefined) {
      socket.destroy();
      const detail = "the file of the authorities holds a broken certificate";
      return resolve({ kind: "failed", because: "unusable-settings", detail });
    }
    const fail = (verdict: ProbeVerdict): void => {
      forget();
      secured.destroy();
      socket.destroy();
      resolve({ kind: "failed", ...verdict });
    };
    let forget = (): void => undefined;
    secured.once("secureConnect", () => {
      forget();
      resolve({ kind: "secured", socket: secured });
    });
    // Stays: an error that nobody listens to would end the thread.
    secured.on("error", (error: NodeJS.ErrnoException) => {
      fail({ because: "tls-failed", detail: `TLS: ${sayError(error, host)}` });
    });
    forget = limit.onEnd((end) => {
      const because = end === "time" ? "tls-timeout" : "stopped";
      fail({ because, detail: `no TLS handshake within ${limit.shown}` });
    });
  });
}

/** @returns undefined: no certificate can be made of what `ca` holds */
function begin(socket: Socket, { host, ca, isInsecure }: SecureSettings): TLSSocket | undefined {
  try {
    return connect({
      socket,
      host,
      // A server name is never an address (RFC 6066, section 3); the address is checked as `host`.
      ...(isIP(host) === 0 ? { servername: host } : {}),
      // Said aloud: SSL_CERT_FILE, SSL_CERT_DIR and NODE_EXTRA_CA_CERTS add to the default.
      ca: ca ?? [...rootCertificates],
      // Said aloud: NODE_TLS_REJECT_UNAUTHORIZED=0 changes the default.
      rejectUnauthorized: !isInsecure,
    });
  } catch {
    return undefined; // Errors of PEM and ASN.1, which say nothing about where
  }
}

/** Codes of X509_verify_cert_error_string(3), of Node's tls, and of BoringSSL. */
function sayError(error: NodeJS.ErrnoException, host: string): string {
  const code = error.code ?? "";
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") return `the certificate is not one of ${host}`;
  if (code.startsWith("ERR_SSL_")) return code.replace("ERR_SSL_", "").replaceAll("_", " ");
  if (code === "ECONNRESET") return "the connection was closed in the handshake";
  return error.message;
}
