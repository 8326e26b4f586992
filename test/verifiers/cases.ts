// Every verifier over HTTP, with the service that it asks.

import { gitHubCases } from './stand-ins/github.ts';
import { mailCases } from './stand-ins/mail.ts';
import { slackCases } from './stand-ins/slack.ts';
import type { VerifierCase } from './stand-ins/stand-in.ts';
import { stripeCases } from './stand-ins/stripe.ts';
import { twilioCases } from './stand-ins/twilio.ts';
import { workCases } from './stand-ins/work.ts';

export const cases: readonly VerifierCase[] = [
  ...stripeCases,
  ...gitHubCases,
  ...slackCases,
  ...mailCases,
  ...workCases,
  ...twilioCases,
];
