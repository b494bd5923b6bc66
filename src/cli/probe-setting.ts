/**
 * The shape of an option that says how probes are asked.
 *
 * Holds no option itself. Always: each says who can use it, so that a setting that nobody could use
 * is refused and never passed over.
 */

import type { Backoff } from "../core/backoff.ts";
import type { HttpDetails, ProbeSettings } from "../core/probe-settings.ts";
import { option } from "./option-row.ts";
import type { OptionRow, ValueKind } from "./option-row.ts";
import { mapped, parseSwitch } from "./values.ts";
import type { Parsed } from "./values.ts";

type OwnSaid = Pick<
  ProbeSettings,
  | "onOpen"
  | "onUnready"
  | "startupWaitMs"
  | "periodMs"
  | "timeoutMs"
  | "initialDelayMs"
  | "failureThreshold"
  | "failureWindow"
  | "successThreshold"
>;

/** What can be said of a probe beside its target, all on one level. */
export type ProbeSaid = OwnSaid & Backoff & HttpDetails;

/** Which probes a setting means something to. */
export type ProbeUse = "any" | "liveness" | "readiness" | "http" | "tls" | "proxy";

/** What one option or key says, and to whom. */
export interface Said {
  readonly use: ProbeUse;
  readonly fields: Partial<ProbeSaid>;
}

export interface ProbeSettingRow extends OptionRow<{ readonly probing: { readonly said: Said } }> {
  readonly use: ProbeUse;
}

type Details = Parameters<typeof option>[2] & Pick<OptionRow<unknown>, "hide">;

interface Setting {
  readonly flag: `--${string}`;
  readonly kind: ValueKind;
  readonly use: ProbeUse;
}

export function setting(
  { flag, kind, use }: Setting,
  details: Details,
  read: (text: string) => Parsed<Partial<ProbeSaid>>,
): ProbeSettingRow {
  const { hide, ...shown } = details;
  const row = option(flag, kind, shown, (text) =>
    mapped(read(text), (fields) => ({ probing: { said: { use, fields } } })),
  );
  return { ...row, hide, use };
}

export function switchSetting(
  flag: `--${string}`,
  use: ProbeUse,
  details: { readonly help: string; readonly change: (isOn: boolean) => Partial<ProbeSaid> },
): ProbeSettingRow {
  const { help, change } = details;
  const shown = { valueName: "", example: "on", defaultText: "off", help };
  return setting({ flag, kind: "switch", use }, shown, (text) => mapped(parseSwitch(text), change));
}
