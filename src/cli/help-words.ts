/**
 * The shape of the sentences of the help, and the rows that several commands share.
 */

export interface StatusRow {
  readonly status: string;
  readonly meaning: string;
}

export interface HelpText {
  readonly sentence: string;
  readonly notes: readonly string[];
  readonly examples: readonly string[];
  /** Undefined: the outcomes of a run. */
  readonly statuses?: readonly StatusRow[];
}

export const WRONG_LINE: StatusRow = { status: "64", meaning: "the command line is wrong" };
export const WRONG_PLACE: StatusRow = {
  status: "78",
  meaning: "a person must change something, such as the owner of the state directory",
};
export const UNANSWERED: StatusRow = {
  status: "125",
  meaning: "the answer could not be had or written",
};
/** An answer is a success, whatever it says (product.md, section 3). */
export const ANSWERED: StatusRow = { status: "0", meaning: "answered, whatever the answer is" };

export const NAMED =
  "A name is that of a job, a key such as lane:gpu (the run that holds it, or else held it " +
  "last), or the id of a run.";
