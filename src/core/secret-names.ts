/**
 * Which names say that their value is a secret: of variables, options, keys of a query, fields of a
 * header. Pure.
 *
 * Always: a name that only tells where a secret is (`TOKEN_FILE`, `SSH_AUTH_SOCK`, `PWD`) is none.
 */

/** A word of the name, wherever it stands. */
const WORDS = new Set([
  "password",
  "passwords",
  "passwd",
  "passphrase",
  "secret",
  "secrets",
  "token",
  "tokens",
  "apikey",
  "apitoken",
  "authtoken",
  "accesskey",
  "secretkey",
  "privatekey",
  "credential",
  "credentials",
  "creds",
  "jwt",
  "bearer",
  "authorization",
  "webhook",
  "dsn",
]);
/** The last word of a name of several, or all of it. */
const LAST_WORDS = new Set([
  "pass",
  "sshpass",
  "dbpass",
  "userpass",
  "smtppass",
  "rootpass",
  "pw",
  "bindpw",
  "dbpw",
  "rootpw",
  "otp",
  "pin",
  "pat",
  "auth",
  "cookie",
  "signature",
  "sig",
  "key",
]);
/** `MYSQL_PWD`; alone and as OLDPWD it is a directory. */
const LAST_OF_SEVERAL = new Set(["pwd"]);
/** What comes last and says that the value is a place, a name or a number of something. */
const REFERENCES = new Set([
  "file",
  "files",
  "path",
  "paths",
  "dir",
  "directory",
  "sock",
  "socket",
  "url",
  "uri",
  "host",
  "id",
  "ids",
  "name",
  "names",
  "type",
  "kind",
  "ttl",
  "timeout",
  "length",
  "count",
  "size",
  "enabled",
  "disabled",
  "required",
  "program",
  "command",
  "cmd",
  "method",
  "mode",
  "helper",
]);
/** Of these the reference is the secret itself. */
const SECRET_REFERENCES = new Set(["webhook"]);

export function isSecretName(name: string): boolean {
  const words = wordsOf(name);
  const last = words.at(-1) ?? "";
  const isNamed = words.some((word) => WORDS.has(word) || /(password|passwd|apikey)$/.test(word));
  if (isNamed) {
    return !REFERENCES.has(last) || words.some((word) => SECRET_REFERENCES.has(word));
  }
  if (LAST_OF_SEVERAL.has(last)) return words.length > 1;
  return LAST_WORDS.has(last);
}

/** `apiToken`, `API_TOKEN` and `--api-token` are the same words. */
function wordsOf(name: string): readonly string[] {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== "");
}
