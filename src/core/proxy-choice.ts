/**
 * Which proxy of the environment an address is reached by. Pure: the environment is handed in.
 */

/** What of an address decides. */
export interface ProxiedTarget {
  readonly kind: string;
  readonly host?: string;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * The rules of curl(1), "ENVIRONMENT": `http_proxy` counts in lower case alone, because a CGI
 * program finds the header `Proxy:` of a stranger in HTTP_PROXY (CVE-2016-5385).
 *
 * @returns what the variables say, also where it is no address; undefined: without a proxy
 */
export function chooseProxy(target: ProxiedTarget, environment: Environment): string | undefined {
  const { kind, host = "" } = target;
  if (kind !== "http" && kind !== "https") return undefined;
  const except = environment["no_proxy"] ?? environment["NO_PROXY"] ?? "";
  if (except.split(/[,\s]+/).some((entry) => covers(entry, host))) return undefined;
  const names =
    kind === "http"
      ? ["http_proxy", "all_proxy", "ALL_PROXY"]
      : ["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
  return names
    .map((name) => environment[name])
    .find((value) => value !== undefined && value !== "");
}

/** `*`, a host, or a domain with everything below it. */
function covers(entry: string, host: string): boolean {
  if (entry === "*") return true;
  const name = entry
    .replace(/^\./, "")
    .replace(/^\[(.*)\]$/, "$1")
    .toLowerCase();
  const wanted = host.replace(/^\[(.*)\]$/, "$1").toLowerCase();
  return name !== "" && (wanted === name || wanted.endsWith(`.${name}`));
}
