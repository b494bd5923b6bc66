/**
 * What a beat does to files, as one object, so that a test can make any part of it fail. Decides
 * nothing: each part is the file module's own.
 */
import { closeSync, fstatSync, unlinkSync } from "node:fs";
import { inodeAt, isThePath, openLock, tryLock } from "../files/lock-file.ts";
import { nameInode } from "../files/own-file.ts";
import { listSlots, makePlace } from "../files/places.ts";
import { readRecord, writeRecord } from "../files/record-file.ts";
import { createSlot, readSlot, writeSlot } from "../files/slot-file.ts";

export const beatFiles = {
  inodeAt,
  isThePath,
  openLock,
  tryLock,
  listSlots,
  makePlace,
  readRecord,
  writeRecord,
  createSlot,
  readSlot,
  writeSlot,
  /** `device:inode` of an open file. @throws the error of the system call (EBADF) */
  inodeOf(fd: number): string {
    return nameInode(fstatSync(fd, { bigint: true }));
  },
  remove(path: string): void {
    unlinkSync(path);
  },
  close(fd: number): void {
    closeSync(fd);
  },
} as const;

export type BeatFiles = typeof beatFiles;
