// Reads a response's body as far as it is kept. What is longer is passed on whole, and not kept.

export type CapturedStream =
  | { readonly body: Uint8Array; readonly rest?: undefined }
  | { readonly body: undefined; readonly rest: ReadableStream<Uint8Array> };

export async function captureStream(
  stream: ReadableStream<Uint8Array>,
  maxBytes: number,
): Promise<CapturedStream> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  for (let size = 0; size <= maxBytes; ) {
    const { done, value } = await reader.read();
    if (done) return { body: Buffer.concat(chunks) };
    const bytes = typeof value === 'string' ? Buffer.from(value) : value;
    size += bytes.byteLength;
    chunks.push(bytes);
  }
  const rest = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return { body: undefined, rest };
}
