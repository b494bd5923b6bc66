/**
 * A small file that the settings name: authorities, credentials. Links are followed, as in
 * /etc/ssl; a FIFO or a device is not waited for. Read at each probe, so that a renewed file holds.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs";

/** Debian's bundle of all authorities has 220 KB. */
export const LARGEST_GIVEN_BYTES = 1024 * 1024;

export type GivenFile =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "refused"; readonly found: string };

export function readGivenFile(path: string): GivenFile {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    return refuse(path, codeOf(error));
  }
  try {
    const stat = fstatSync(descriptor);
    if (!stat.isFile()) return refuse(path, "not a regular file");
    if (stat.size > LARGEST_GIVEN_BYTES) return refuse(path, "larger than 1 MiB");
    return { kind: "text", text: readFileSync(descriptor, "utf8") };
  } catch (error) {
    return refuse(path, codeOf(error)); // EIO
  } finally {
    closeSync(descriptor);
  }
}

/** A key in PEM is none: TLS would trust nobody with it, and every probe would fail. */
export function holdsCertificate(pem: string): boolean {
  return pem.includes("-----BEGIN CERTIFICATE-----");
}

function refuse(path: string, found: string): GivenFile {
  return { kind: "refused", found: `${path} cannot be read (${found})` };
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? String(error);
}
