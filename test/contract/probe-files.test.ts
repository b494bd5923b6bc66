/** What probes are told by files, with real files: read at the start, or refused with the path. */
import { afterAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { answerProbe } from "../../src/cli/answer-probe.ts";
import { WatchdogError } from "../../src/core/errors.ts";
import { circuitNameOf, defaultProbeSettings } from "../../src/core/probe-settings.ts";
import type { HttpDetails, ProbeSettings } from "../../src/core/probe-settings.ts";
import { parseProbeTarget } from "../../src/core/probe-target.ts";
import type { Inheritance } from "../../src/os/inheritance.ts";
import { LARGEST_GIVEN_BYTES } from "../../src/os/given-file.ts";
import { readProbeFiles } from "../../src/probe/given-values.ts";
import { CA_FILE } from "../support/probe-scene.ts";
import { FIXTURES } from "../support/scene.ts";

const directory = mkdtempSync(join(tmpdir(), "watchdog-probe-files-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let count = 0;

function write(text: string): string {
  count += 1;
  const path = join(directory, `${count}`);
  writeFileSync(path, text);
  return path;
}

function settingsOf(http: Partial<HttpDetails>): ProbeSettings {
  const parsing = parseProbeTarget("https://localhost/");
  if (parsing.kind === "refused") throw new Error(parsing.because);
  const settings = defaultProbeSettings("liveness", parsing.target);
  return { ...settings, http: { ...settings.http, ...http } };
}

function read(http: Partial<HttpDetails>): ProbeSettings {
  const [settings] = readProbeFiles([settingsOf(http)]);
  if (settings === undefined) throw new Error("nothing came back");
  return settings;
}

function refusalOf(http: Partial<HttpDetails>): string {
  try {
    read(http);
  } catch (error) {
    if (!(error instanceof WatchdogError)) throw error;
    expect([error.code, error.exitStatus]).toEqual(["config.refused", 78]);
    return error.message;
  }
  throw new Error("not refused");
}

describe("a file", () => {
  test("gives the value of a header and the body, and no circuit its name", () => {
    const file = write("s3cr3t\n");
    const bodyFile = write('{"a": 1}\n');
    const headers = [
      { name: "Accept", value: "text/plain" },
      { name: "X-Auth", value: "", file },
    ];
    const settings = read({ headers, bodyFile, method: "POST" });
    expect(settings.http.headers).toEqual([
      { name: "Accept", value: "text/plain" },
      { name: "X-Auth", value: "s3cr3t", file },
    ]);
    expect(settings.http.body).toBe('{"a": 1}\n');
    expect(circuitNameOf(settings)).toBe(
      circuitNameOf(settingsOf({ headers, bodyFile, method: "POST" })),
    );
  });

  test("that is named relative to the working directory is the same one from elsewhere", () => {
    const caFile = relative(process.cwd(), CA_FILE);
    const credentialsFile = write("me:s3cr3t");
    const near = read({ caFile, credentialsFile: relative(process.cwd(), credentialsFile) });
    expect([near.http.caFile, near.http.credentialsFile]).toEqual([CA_FILE, credentialsFile]);
    const bodyFile = write("b");
    const body = read({ bodyFile: relative(process.cwd(), bodyFile), method: "POST" });
    expect([body.http.bodyFile, body.http.body]).toEqual([bodyFile, "b"]);
    const headers = [{ name: "X", value: "", file: relative(process.cwd(), bodyFile) }];
    expect(read({ headers }).http.headers[0]?.file).toBe(bodyFile);
    expect(circuitNameOf(near)).toBe(circuitNameOf(read({ caFile: CA_FILE, credentialsFile })));
  });

  test("is not looked for where none is named", () => {
    const settings = settingsOf({});
    expect(readProbeFiles([settings])).toEqual([settings]);
    expect(readProbeFiles([])).toEqual([]);
  });
});

test("watchdog probe reads them too, before it asks anybody", async () => {
  const missing = join(directory, "missing");
  const cut = {
    kind: "probe",
    probes: [settingsOf({ credentialsFile: missing })],
    isJson: false,
    isCheck: false,
    stateDir: undefined,
    configFile: undefined,
  } as const;
  const around = { probeUrl: new URL("file:///"), inherited: {} as Inheritance };
  await expect(answerProbe(cut, around)).rejects.toThrow(`${missing} cannot be read (ENOENT)`);
});

describe("what is refused", () => {
  const header = (file: string): Partial<HttpDetails> => ({
    headers: [{ name: "X", value: "", file }],
  });
  const missing = join(directory, "missing");

  test("is a file that is not there, whatever it is for", () => {
    for (const http of [
      header(missing),
      { caFile: missing },
      { credentialsFile: missing },
      { bodyFile: missing, method: "POST" },
    ]) {
      expect(refusalOf(http)).toBe(`probe: ${missing} cannot be read (ENOENT)`);
    }
  });

  test("is a directory, and what is too large for a setting", () => {
    expect(refusalOf({ caFile: directory })).toContain("not a regular file");
    const large = write("x".repeat(LARGEST_GIVEN_BYTES + 1));
    expect(refusalOf({ bodyFile: large, method: "POST" })).toContain("larger than 1 MiB");
  });

  test("is a file of authorities without one that can be read", () => {
    for (const text of ["", "no certificate", CERTIFICATE_CUT_SHORT, KEY_ALONE]) {
      expect(refusalOf({ caFile: write(text) })).toContain("holds no certificate");
    }
    expect(read({ caFile: CA_FILE })).toBeObject();
  });

  test("are credentials and values of no line or of two, without a word of them", () => {
    expect(refusalOf({ credentialsFile: write("\n") })).toContain("is empty, expected USER:PASS");
    for (const text of ["a\ns3cr3t", "s3cr3t\0", "s3cr3t\n\n"]) {
      const path = write(text);
      for (const http of [header(path), { credentialsFile: path }]) {
        expect(refusalOf(http)).toBe(
          `probe: ${path} holds more than one line of text, expected one`,
        );
      }
    }
    expect(refusalOf(header(write("s3cr3t\u0001")))).not.toContain("s3cr3t");
  });

  test.if(process.getuid?.() !== 0)("is a file that this user may not read", () => {
    const path = write("s3cr3t");
    chmodSync(path, 0);
    expect(refusalOf({ credentialsFile: path })).toContain("(EACCES)");
  });
});

const KEY_ALONE = readFileSync(`${FIXTURES}/localhost-key.pem`, "utf8");
const CERTIFICATE_CUT_SHORT = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
