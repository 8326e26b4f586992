// Tells whether the body of a response could be read: clients and retry loops send a request again whose answer broke off,
// although its status has arrived.

/** The same response; `onFailure` is called when its body, or that of a copy, breaks off or is not what it says. */
export function watchBody(response: Response, onFailure: () => void): Response {
  const { body, status, statusText, headers } = response;
  if (body === null) return response;
  const watched = new Response(watchStream(body, onFailure), { status, statusText, headers });
  return withFacts(watched, response, onFailure);
}

/** Clients read a body in many ways, and all of them read its stream. */
function watchStream(body: ReadableStream<Uint8Array>, onFailure: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream({
    type: 'bytes',
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value as Uint8Array<ArrayBuffer>);
        controller.close();
        // A reader that brought its own buffer waits for it.
        controller.byobRequest?.respond(0);
      } catch (error) {
        onFailure();
        throw error;
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/** A response that was constructed knows nothing of its request. */
function withFacts(watched: Response, { url, redirected, type }: Response, onFailure: () => void): Response {
  const own = (value: unknown) => ({ value, writable: true, configurable: true });
  const { json, formData, clone } = watched;
  const parseWith = (parse: () => Promise<unknown>) => async () => {
    try {
      return await parse.call(watched);
    } catch (error) {
      onFailure();
      throw error;
    }
  };
  return Object.defineProperties(watched, {
    url: own(url),
    redirected: own(redirected),
    type: own(type),
    json: own(parseWith(json)),
    formData: own(parseWith(formData)),
    clone: own(() => withFacts(clone.call(watched), watched, onFailure)),
  });
}
