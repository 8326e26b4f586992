// Every limit on what comes from outside, in one place: how long, how deep, how many, how late, how much at once. Input
// beyond a limit is refused with an error that names it; within the limits every algorithm is linear.

const MiB = 1024 * 1024;

export const limits = {
  /** One message, line, event or body. */
  messageBytes: 64 * MiB,
  /**
   * All messages of clients that a process is receiving or has in hand; all that it is receiving from servers; all that waits
   * for clients. Peers that send halves, or do not read, must not fill the memory.
   */
  unfinishedBytes: 128 * MiB,
  /** What waits for one peer that does not read. Beyond it, the source is paused or the peer is disconnected. */
  unreadBytes: 16 * MiB,
  /** Levels of nesting in one JSON text. Readers that recurse overflow their stack far beyond it. */
  jsonDepth: 500,
  /** Members and elements in one JSON text of a client. Each costs far more than its bytes, in memory and in time. */
  jsonValues: 200_000,
  /** Characters of the name of a tool. */
  nameCharacters: 1_000,
  /** Characters of one number in JSON. */
  numberCharacters: 1_000,
  /** Numbers in one message of a server that JavaScript would round, and whose digits are kept: each becomes an object. */
  exactNumbers: 200_000,
  /** Combining marks in a row in a text that is normalised: sorting them takes the square of their number. Unicode's own limit. */
  combiningMarks: 30,
  /** Objects and lists in the args of one call. */
  argsContainers: 500_000,
  /**
   * Members that are looked at while one call's args are tried out for defaults of the schema. Beyond it, all identity fields
   * are in the key. Counted, not timed: every process must come to the same key.
   */
  trialMembers: 400_000,
  /** How long a peer may leave what was sent to it unread before it is disconnected. */
  unreadMs: 30_000,
  /** Calls of one client that are not answered yet. */
  openCalls: 20_000,
  /** How long a client may take to send one request. */
  requestMs: 120_000,
  /** Connections to one listening process. */
  connections: 4_000,
  /** Clients that listen for events at once, each with a connection that stays; half as many of one namespace. */
  eventStreams: 200,
  /** Calls over HTTP that wait for another worker, each asking the store again and again; half as many of one namespace. */
  waitingCalls: 4_000,
  /** Requests of one connection that are not answered yet. Clients wait for an answer, or open another connection. */
  pipelined: 100,
  /** Pages of one list that a server gives in parts. */
  listPages: 100,
  /** Entries of such a list. */
  listEntries: 10_000,
  /** What is kept of such lists, of which each caller may get another one. */
  listedCharacters: 32 * MiB,
  /** Tools whose guards are kept; a client may make up names. The one that was called longest ago is made anew when needed. */
  guardedTools: 1_000,
  /** Namespaces that one server uses. */
  servedNamespaces: 1_000,
  /** The body of one request to the server. */
  requestBytes: 16 * MiB,
  /** The body of a login, which anybody may send. */
  loginBytes: 1_000,
  /** The policy that a client of the server sends with a call. */
  policyCharacters: 20_000,
  /** Items of one batch. */
  batchItems: 500,
  /** One answer of the server: a page of records ends here, and the values of a batch. */
  answerBytes: 16 * MiB,
  /** Rows that one statement of a scan looks at. Between two, renewals and everything else of the process get their turn. */
  scannedRows: 5_000,
  /** Rows that are looked at for one page of the server; it may be short. */
  pageRows: 200_000,
  /** Doubts that the server reads to group them. */
  groupedDoubts: 10_000,
  /** Requests for records that the server answers at once; each may hold a page in memory. */
  recordReads: 4,
  /** Things that are kept for later use in one process: questions that were asked, and alike. */
  kept: 10_000,
  /** A file or a stream that a command reads to its end. */
  inputBytes: 16 * 1024 * MiB,
  /** A file that somebody writes by hand: a policy, an identity. */
  smallInputBytes: 4 * MiB,
} as const;
