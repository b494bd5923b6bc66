/**
 * Loaded before each test file (bunfig.toml): a worker of `bun test --parallel` leads a group when
 * it begins, and cannot begin a session any more once a child of an earlier file is in that group.
 */
import { takeOwnSession } from "./own-session.ts";

takeOwnSession();
