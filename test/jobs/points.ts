// Where a nightly job may die.

export const points = [
  'before the lock',
  'between lock and slot',
  'before the first step',
  'in the first step',
  'between two steps',
  'while the file is written',
  'with the file beside its place',
  'with the file on record',
  'with the file in its place',
  'after the last step',
  'before the lock is released',
] as const;

export type Point = (typeof points)[number];
