/** What is taken out of a text as a secret, and what is left in it. */
import { describe, expect, test } from "bun:test";
import { compilePattern, makeMask, maskShapes, maskTail } from "../../../src/core/masking.ts";
import { TOKEN_SHAPES } from "../../../src/core/token-shapes.ts";
import { isSecretName } from "../../../src/core/secret-names.ts";

describe("a name", () => {
  test.each(
    (
      "API_TOKEN apiToken --api-token DB_PASSWORD PGPASSWORD MYSQL_PWD SSHPASS GITHUB_PAT " +
      "AWS_SECRET_ACCESS_KEY STRIPE_KEY X-Api-Key client_secret SLACK_WEBHOOK_URL SENTRY_DSN " +
      "WATCHDOG_WEBHOOK Authorization db.pass PRIVATE_KEY NPM_TOKEN passphrase credentials " +
      "clientSecret accessToken x-authToken"
    ).split(" "),
  )("%s says that its value is a secret", (name) => {
    expect(isSecretName(name)).toBe(true);
  });

  test.each(
    (
      "PWD OLDPWD PATH HOME TOKEN_FILE SSH_AUTH_SOCK XDG_SESSION_ID SSH_ASKPASS KEYBOARD monkey " +
      "XAUTHORITY COMPASS author passes bypass PASSWORD_STORE_DIR token_count SECRET_NAME " +
      "AWS_ACCESS_KEY_ID tokenizer keys session name DESKTOP_SESSION GIT_ASKPASS timeout"
    ).split(" "),
  )("%s does not", (name) => {
    expect(isSecretName(name)).toBe(false);
  });
});

/** Put together here, so that no scanner takes this file for a leak. */
const TOKENS: readonly (readonly [service: string, token: string])[] = [
  ["GitHub", `ghp_${"a1B2".repeat(9)}`],
  ["GitHub, fine-grained", `github_pat_${"11AB".repeat(6)}_${"x9".repeat(20)}`],
  ["GitLab", `glpat-${"aB3-".repeat(5)}`],
  ["Slack", `xoxb-${"123456789-".repeat(2)}abcDEF`],
  ["AWS", `AKIA${"ABCD2345".repeat(2)}`],
  ["AWS, for a session", `ASIA${"ABCD2345".repeat(2)}`],
  ["Stripe", `sk_live_${"a1B2c3".repeat(4)}`],
  ["Google", `AIza${"a1B2c".repeat(7)}`],
  ["npm", `npm_${"a1B2".repeat(9)}`],
  ["a model service", `sk-proj-${"a1B2".repeat(8)}`],
  ["JWT", `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${"a1_-".repeat(8)}`],
  ["Telegram", `123456789:AA${"a1B2".repeat(8)}`],
];

describe("a token of a known shape is hidden wherever it stands", () => {
  test.each(TOKENS)("%s", (_, token) => {
    for (const text of [token, `x ${token} y`, `"${token}"`, `(${token})`, `a=${token};b`]) {
      const masked = maskShapes(text);
      expect(masked).not.toContain(token.slice(12));
      expect(masked).toContain("***");
    }
  });

  test("a webhook whose path is the secret keeps its host", () => {
    const slack = `https://hooks.slack.com/services/T0${"A1".repeat(4)}/B0/${"x9".repeat(8)}`;
    expect(maskShapes(`post to ${slack}.`)).toBe("post to https://hooks.slack.com/services/***.");
    const discord = `https://discord.com/api/webhooks/123/${"a-B".repeat(5)}`;
    expect(maskShapes(discord)).toBe("https://discord.com/api/webhooks/***");
    const older = discord.replace("discord.com", "discordapp.com").replace("/api/", "/api/v10/");
    expect(maskShapes(older)).toBe("https://discordapp.com/api/v10/webhooks/***");
  });

  test("a private key is hidden from its first line to its last, or to the end", () => {
    const key = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----";
    expect(maskShapes(`a\n${key}\nb`)).toBe("a\n***\nb");
    expect(maskShapes(`a\n${key.slice(0, 40)}`)).toBe("a\n***");
  });
});

test("the marks are found in every text with a token, so that it is looked at", () => {
  const others = [`hvs.${"a1".repeat(15)}`, `hf_${"aB".repeat(15)}`, `dop_v1_${"a1".repeat(20)}`];
  const more = [
    `SG.${"a1".repeat(10)}.${"b2".repeat(10)}`,
    `ya29.${"a1".repeat(15)}`,
    "Digest a1b2c3d4",
    `Basic ${btoa("me:hunter2")}`,
    `Bearer ${"a1B2".repeat(4)}`,
    "token a1b2c3d4",
  ];
  const last = [`whsec_${"a1".repeat(10)}`, `pypi-${"a1".repeat(10)}`, `xapp-1-${"A1".repeat(8)}`];
  const tokens = [...TOKENS.map(([, token]) => token), ...others, ...more, ...last];
  for (const shape of TOKEN_SHAPES) {
    const found = tokens.filter((token) => new RegExp(shape.source).test(token));
    const isOfPath = /slack|discord|PRIVATE KEY/.test(shape.source);
    expect([shape.source, found.length > 0 || isOfPath]).toEqual([shape.source, true]);
  }
  for (const token of tokens) expect([token, maskShapes(token)]).not.toEqual([token, token]);
});

describe("in a text", () => {
  test.each([
    ["http://user:pw_77@127.0.0.1:1/h", "http://user:***@127.0.0.1:1/h"],
    ["clone https://git@host/x", "clone https://git@host/x"],
    ["postgres://app:s3cr3t@db/x?sslmode=on", "postgres://app:***@db/x?sslmode=on"],
    ["GET /a?b=1&api_key=xyz&c=2", "GET /a?b=1&api_key=***&c=2"],
    ["https://h/p?access_token=abc#frag", "https://h/p?access_token=***#frag"],
    ['{"password": "a b\\"c", "user": "x"}', '{"password": "***", "user": "x"}'],
    ["TOKEN=abc ./run --password hunter2 -v", "TOKEN=*** ./run --password *** -v"],
    ["Authorization: Bearer abcdefgh123", "Authorization: *** ***"],
    ["docker run --env=API_TOKEN=x1y2 -e=A=b", "docker run --env=API_TOKEN=*** -e=A=b"],
    ["terraform -var=db_password=x1y2 -token x3", "terraform -var=db_password=*** -token ***"],
    ["curl --proxy-user me:hunter2 -Ume:hunter3", "curl --proxy-user me:*** -Ume:***"],
    ["curl -u me:hunter2 -H 'X-Api-Key: k1'", "curl -u me:*** -H 'X-Api-Key: ***'"],
    ["curl --user=me:hunter2 h; curl -ume:hunter2 h", "curl --user=me:*** h; curl -ume:*** h"],
    ["git push https://a1b2c3d4e5f6a7b8@host/x", "git push https://***@host/x"],
    ["GET https://u:p@ss@host/x", "GET https://u:***@host/x"],
  ])("%j becomes %j", (text, masked) => {
    // What comes before `Bearer` is hidden as the value of its header; both are right.
    const found = maskShapes(text);
    if (text.startsWith("Authorization")) expect(found).not.toContain("abcdefgh123");
    else expect(found).toBe(masked);
  });

  test.each([
    "nightly ended with status 3",
    "watchdog: ended 1 process left by the command: 4711 sleep 60; hint: --leftovers leave",
    "019375aa-1f2e-7c41-9d7e-3c1a52f0a111",
    "commit 0099573192a3bfd5a8b1c2d3e4f5061728394a5b",
    "docker run -u 1000:1000 -v /a:/b image",
    "bench -u https://host:8080/x --user http://host/",
    "password: required",
    "openssl rsa -key app.pem -pass env:PW",
    "a=b=c --set=image.tag=v1 x==y",
    "hint: watchdog notify test --webhook file:/etc/watchdog/webhook",
    "export TOKEN=$TOKEN; mysql --password $PW",
    "user=app key: value author=me pass: 3 of 4",
    "http://localhost:8080/health?deep=1",
    "/usr/lib/x86_64-linux-gnu/libc.so.6 sha256:4b5c",
    "bearer of news, basic training, token economy",
    "2026-11-30T02:00:05.000Z 12:30:45 10:20",
    "git@github.com:org/repo.git",
    "--password-file /etc/pw --token-ttl 60",
  ])("%j stays as it is", (text) => {
    expect(maskShapes(text)).toBe(text);
  });
});

describe("a known value", () => {
  test("is hidden in every text, however it is written there", () => {
    const secret = 'p"w/ä 1';
    const mask = makeMask({ environment: [`APP_SECRET=${secret}`] });
    expect(mask.text(`<${secret}>`)).toBe("<***>");
    expect(mask.text(`?x=${encodeURIComponent(secret)}`)).toBe("?x=***");
    expect(mask.text(JSON.stringify({ x: secret }))).toBe('{"x":"***"}');
    expect(mask.value({ a: [secret, 1, null], b: { c: secret } })).toEqual({
      a: ["***", 1, null],
      b: { c: "***" },
    });
  });

  test("takes nothing from what others find a thing by, nor from our own words", () => {
    const environment = ["POSTGRES_PASSWORD=postgres", "A_TOKEN=run-ended", "B_TOKEN=webhook"];
    const mask = makeMask({ environment });
    const sinks = [{ kind: "webhook", shown: "webhook postgres" }];
    const lease = { kind: "job", name: "postgres-dump", generation: 1 };
    const entry = {
      kind: "run-ended",
      run: { job: "postgres-dump", cwd: "/srv/postgres", command: ["pg_dump", "postgres"] },
      leases: [lease],
      telling: { sinks, logTail: "password postgres is wrong" },
    };
    expect(mask.value(entry)).toEqual({
      ...entry,
      run: { job: "postgres-dump", cwd: "/srv/postgres", command: ["pg_dump", "***"] },
      telling: { sinks, logTail: "password *** is wrong" },
    });
  });

  test("is that of an option of the command, and of a password in an address", () => {
    const mask = makeMask({
      command: ["run", "--api-token=tok_1a2b3c4d5e", "--secret", "abcdef1", "TOKEN=xyz789x"],
      environment: ["DATABASE_URL=postgres://app:dbpw_1234@db/x"],
    });
    const said = mask.text("calling with tok_1a2b3c4d5e, abcdef1, xyz789x and dbpw_1234");
    expect(said).toBe("calling with ***, ***, *** and ***");
  });

  test("of several lines is hidden line by line, too", () => {
    const lines = ["first-line-of-it-123", "second-line-of-it-456"];
    const mask = makeMask({ environment: [`SIGNING_KEY=${lines.join("\n")}`] });
    expect(mask.text(`a ${lines[1]} b`)).toBe("a *** b");
  });

  test("that is short, a plain word or the place of a file is none", () => {
    const entries = ["A_TOKEN=abc", "B_TOKEN=disabled", "C_KEY=/etc/ssl/private/app.key"];
    const mask = makeMask({ environment: entries });
    const text = "abc disabled /etc/ssl/private/app.key";
    expect(mask.text(text)).toBe(text);
  });
});

describe("several known values", () => {
  test("of which one begins like the other are hidden as a whole", () => {
    const environment = ["A_TOKEN=abcdef12", "B_TOKEN=abcdef12-the-rest"];
    for (const entries of [environment, environment.toReversed()]) {
      expect(makeMask({ environment: entries }).text("<abcdef12-the-rest>")).toBe("<***>");
    }
  });

  test("of a configuration are hidden from a length on that leaves a text readable", () => {
    const mask = makeMask({ values: ["", "e", "short", "longer"] });
    expect(mask.text("the short and the longer one")).toBe("the short and the *** one");
  });
});

test("the address of a ping is a secret by its variable alone: whoever has it can ping", () => {
  const address = "http://10.0.0.7/ping/nightly";
  const mask = makeMask({ environment: [`WATCHDOG_PING=${address}`, `OTHER_PLACE=${address}x`] });
  expect(mask.text(`asked ${address}, got 404`)).toBe("asked ***, got 404");
  expect(makeMask({ environment: [`OTHER_PLACE=${address}`] }).text(address)).toBe(address);
});

test("a command is hidden word by word, however short the value is", () => {
  const mask = makeMask();
  expect(mask.command(["x", "--password", "abc", "--token=q", "--verbose", "y"])).toEqual([
    "x",
    "--password",
    "***",
    "--token=***",
    "--verbose",
    "y",
  ]);
});

test.each([
  [["--env=API_TOKEN=tok_1a2b3c4d5e"], ["--env=API_TOKEN=***"]],
  [["-var=password=tok_1a2b3c4d5e"], ["-var=password=***"]],
  [
    ["-token", "tok_1a2b3c4d5e"],
    ["-token", "***"],
  ],
  [["--uri=mongodb://u:tok_1a2b3c4d5e@h"], ["--uri=mongodb://u:***@h"]],
  [["rest:https://u:tok_1a2b3c4d5e@h/"], ["rest:https://u:***@h/"]],
])("the secret of %j is hidden there, and wherever it is said again", (command, masked) => {
  const mask = makeMask({ command });
  expect(mask.command(command)).toEqual(masked);
  expect(mask.text("refused: tok_1a2b3c4d5e")).toBe("refused: ***");
});

describe("a password behind a name, as curl takes it,", () => {
  test.each([
    [
      ["-u", "me:x"],
      ["-u", "me:***"],
    ],
    [
      ["-u", "me:$x"],
      ["-u", "me:***"],
    ],
    [
      ["--user", "me:x y"],
      ["--user", "me:***"],
    ],
    [
      ["-U", "me:x"],
      ["-U", "me:***"],
    ],
    [
      ["--proxy-user", "me:x:y"],
      ["--proxy-user", "me:***"],
    ],
    [["-ume:x"], ["-ume:***"]],
    [["--user=me:x"], ["--user=me:***"]],
  ])("is hidden in the command %j", (words, masked) => {
    const command = ["curl", ...words, "https://host/"];
    expect(makeMask({ command }).command(command)).toEqual(["curl", ...masked, "https://host/"]);
  });

  test.each([
    [["-u", "me:hunter2"]],
    [["--proxy-user", "me:hunter2"]],
    [["-ume:hunter2"]],
    [["--user=me:hunter2"]],
  ])("given as %j is hidden wherever it is said again", (words) => {
    const mask = makeMask({ command: ["curl", ...words] });
    expect(mask.text("refused: hunter2")).toBe("refused: ***");
  });

  test.each([
    [["docker", "run", "-u", "1000:1000", "image"]],
    [["bench", "-u", "https://host:8080/path"]],
    [["sudo", "-u", "postgres", "psql", "-U", "app"]],
    [["x", "-u", "-v:x"]],
  ])("is none in %j", (command) => {
    expect(makeMask({ command }).command(command)).toEqual(command);
  });
});

describe("a pattern of a person", () => {
  test("hides what it finds", () => {
    const mask = makeMask({ patterns: ["acct-[0-9]+"] });
    expect(mask.text("for acct-4711 and acct-12")).toBe("for *** and ***");
  });

  test("is refused where it is none, finds nothing everywhere, or may have no end", () => {
    for (const source of ["(", "x*", "(a+)+", "((?:a|b*)c?)*", "(x+y?){2,}", "(a+){3}", "a*a*b"]) {
      expect([source, compilePattern(source)]).toEqual([source, undefined]);
    }
    for (const source of ["a+", "(ab)+c", "[(+]+x", "\\(+a*", "(?:id|nr)-[0-9]+"]) {
      expect([source, compilePattern(source)?.source]).toEqual([source, source]);
    }
  });
});

describe("the end of an output", () => {
  const mask = makeMask({ environment: ["API_TOKEN=tok_1a2b3c4d5e"] });

  test("that was cut in the middle of a secret loses the line in which the cut was", () => {
    expect(maskTail("2b3c4d5e and more\nnext tok_1a2b3c4d5e\n", true, mask)).toBe("next ***\n");
    expect(maskTail("2b3c4d5e and more", true, mask)).toBe("and more");
    expect(maskTail("2b3c4d5e", true, mask)).toBe("");
  });

  test("of which something was left out loses the lines on both sides of that", () => {
    const mark = "[watchdog: 480 bytes omitted here]\n";
    const tail = `first\nand tok_1a2b\n${mark}3c4d5e\nlast tok_1a2b3c4d5e\n`;
    expect(maskTail(tail, false, mask)).toBe(`first\n${mark}last ***\n`);
    expect(maskTail(`one tok_1a2b\n${mark}3c4d5e two`, false, mask)).toBe(`one\n${mark}two`);
    expect(maskTail(`tok_1a2b\n${mark}3c4d5e`, false, mask)).toBe(mark);
  });

  test("that is whole loses nothing but secrets", () => {
    expect(maskTail("tok_1a2b3c4d5e x\n", false, mask)).toBe("*** x\n");
  });
});
