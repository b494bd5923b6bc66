/**
 * What tokens of well-known services look like, wherever they stand. Pure data.
 *
 * Always: a pattern needs a prefix of the service's own or a structure that no ordinary text has,
 * so that words, paths, hashes and ids stay. The length that follows a prefix is a lower bound:
 * services make them longer with time.
 */

/** Each with the flags `g`; a group named `keep` stays as it is. */
export const TOKEN_SHAPES: readonly RegExp[] = [
  // docs.github.com, "About authentication to GitHub", token formats.
  /\bgh[pousr]_[A-Za-z0-9]{20,}\b/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,}\b/g,
  // docs.gitlab.com, "GitLab token overview", token prefixes.
  /\b(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|soat|imt|agent|wt|ffct)|gloas)-[A-Za-z0-9_.-]{16,}/g,
  // docs.slack.dev, "Tokens": bot, user, app-level, configuration and others.
  /\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{8,}/g,
  /\bxapp-[0-9]-[A-Za-z0-9-]{8,}/g,
  /(?<keep>\bhooks\.slack\.com\/(?:services|workflows|triggers)\/)[A-Za-z0-9/_-]+/g,
  // docs.discord.com, webhook resource.
  /(?<keep>\bdiscord(?:app)?\.com\/api\/(?:v[0-9]+\/)?webhooks\/)[A-Za-z0-9/_-]+/g,
  // docs.aws.amazon.com, IAM identifiers: unique id prefixes of access keys.
  /\b(?:AKIA|ASIA)[A-Z2-7]{16}\b/g,
  // docs.stripe.com/keys; webhook signing secrets.
  /\b[srp]k_(?:live|test)_[A-Za-z0-9]{10,}/g,
  /\bwhsec_[A-Za-z0-9+/=]{16,}/g,
  // cloud.google.com/docs/authentication/api-keys; OAuth access tokens.
  /\bAIza[A-Za-z0-9_-]{35}/g,
  /\bya29\.[A-Za-z0-9_-]{20,}/g,
  // Of model services, with a word of the service's own behind it: `sk-`, `sk-proj-` and the like.
  /\bsk-(?:[a-z]+[0-9]*-)*[A-Za-z0-9_-]{20,}/g,
  // Of package registries: npm documents `npm_`, PyPI `pypi-` (pypi.org/help).
  /\bnpm_[A-Za-z0-9]{30,}\b/g,
  /\bpypi-[A-Za-z0-9_-]{16,}/g,
  // docs.digitalocean.com, huggingface.co, hashicorp Vault (hvs., hvb., hvr.), SendGrid, Telegram.
  /\bdo[opr]_v1_[a-f0-9]{32,}\b/g,
  /\bhf_[A-Za-z0-9]{20,}\b/g,
  /\bhv[sbr]\.[A-Za-z0-9_-]{20,}/g,
  /\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}/g,
  /\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}/g,
  // JWT: RFC 7519, base64url of `{"`.
  /\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*/g,
  // RFC 7468: private keys of any kind; the end may be cut off.
  /-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|$)/g,
  // RFC 9110, 11.6.2 and RFC 6750: the credentials of a header.
  /(?<keep>\b(?:[Bb]earer|[Bb]asic|[Tt]oken|[Dd]igest)[ \t]+)(?=\S*[0-9A-Z=])[\w.~+/=-]{8,}/g,
];

/** Each of the shapes has one of these in it: a text without any needs no look at them. */
export const MARKS = new RegExp(
  [
    "gh[pousr]_|github_pat_|gl[a-z]{2,5}-|xox|xapp-|hooks\\.slack|webhooks|A[KS]IA|_live_|_test_",
    "whsec_|AIza|ya29\\.|sk-|npm_|pypi-|_v1_|hf_|hv[sbr]\\.|SG\\.|:AA|eyJ|KEY-----",
    "earer|asic|oken|igest",
  ].join("|"),
);
