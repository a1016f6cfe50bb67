// Passkeys: make one on this device, and sign statements with it. The statement is hashed here from what the page shows,
// exactly as the daemon and `warmstart confirm verify` do (confirm/passkeys/statements.py).

import { enrol, listPasskeys, offerEnrolment } from "./api.js";

const HEAD = "warmstart-confirm";
const WAIT = 120_000; // milliseconds for the person to answer the device

/** Return whether this browser can make passkeys for this page. */
export function canUsePasskeys() {
  return window.isSecureContext && "PublicKeyCredential" in window;
}

/** Say why this page cannot have a passkey, or return an empty text. */
export function explainNoPasskey() {
  if (/^[0-9.]+$|^\[/.test(location.hostname)) {
    const name = `${location.protocol}//localhost:${location.port || 80}`;
    return `Browsers make no passkeys for a page at a bare address. On the daemon's own machine open it as ${name}; on a phone under its HTTPS name.`;
  }
  if (!window.isSecureContext) return "Browsers make passkeys only for pages with HTTPS.";
  return canUsePasskeys() ? "" : "This browser has no passkeys.";
}

/** Make a passkey on this device and enrol it. */
export async function enrolDevice(name) {
  const offer = await offerEnrolment();
  const made = await navigator.credentials.create({
    publicKey: {
      challenge: fromHex(offer.challenge),
      rp: { id: offer.rp, name: "Warmstart confirmations" },
      user: { id: fromHex(offer.user), name: offer.subject, displayName: offer.subject },
      pubKeyCredParams: [-8, -7, -257].map((alg) => ({ type: "public-key", alg })),
      excludeCredentials: offer.known.map((id) => ({ type: "public-key", id: fromBase64(id) })),
      authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
      attestation: "none",
      timeout: WAIT,
    },
  });
  const answer = {
    id: made.id,
    client_data: toBase64(made.response.clientDataJSON),
    attestation: toBase64(made.response.attestationObject),
  };
  return enrol(name, answer);
}

/** Sign the approval of a request; `allow` is null or `{ times, minutes }`. Returns null if no signature is needed. */
export async function signApproval(request, allow) {
  const { passkeys, required } = await listPasskeys();
  if (!required) return null;
  const terms = allow ? [`times=${allow.times}`, `seconds=${allow.minutes * 60}`] : [];
  return sign(passkeys, ["approve", request.id, request.digest, ...terms]);
}

/** Sign that another device is to be trusted. */
export async function signVouching(passkey) {
  const { passkeys } = await listPasskeys();
  return sign(passkeys, ["vouch", passkey.id, passkey.public_key]);
}

/** This device cannot sign; the message says what to do. */
export class NoPasskey extends Error {}

async function sign(passkeys, parts) {
  const mine = passkeys.filter(({ yours, trusted }) => yours && trusted);
  if (mine.length === 0) {
    const waits = passkeys.some(({ yours }) => yours);
    throw new NoPasskey(
      waits
        ? "Nobody has vouched for your device yet. Open Devices on a device that approves already."
        : "Approvals are signed with a passkey here. Set up this device first, under Devices.",
    );
  }
  const why = explainNoPasskey();
  if (why) throw new NoPasskey(why);
  const text = new TextEncoder().encode([HEAD, ...parts].join("\n"));
  const given = await navigator.credentials.get({
    publicKey: {
      challenge: await crypto.subtle.digest("SHA-256", text),
      rpId: location.hostname,
      allowCredentials: mine.map(({ id }) => ({ type: "public-key", id: fromBase64(id) })),
      userVerification: "required",
      timeout: WAIT,
    },
  });
  return {
    id: given.id,
    authenticator_data: toBase64(given.response.authenticatorData),
    client_data: toBase64(given.response.clientDataJSON),
    signature: toBase64(given.response.signature),
  };
}

/** Say why a device did not make or use a passkey. */
export function describeDeviceError(error) {
  if (error instanceof NoPasskey) return error.message;
  if (error.name === "InvalidStateError") return "This device has a passkey for this page already.";
  if (error.name === "NotAllowedError") return "The device did not sign: it was cancelled, took too long, or has no trusted passkey for this page.";
  return "";
}

function fromHex(text) {
  return Uint8Array.from(text.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

function fromBase64(text) {
  return Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (character) => character.charCodeAt(0));
}

function toBase64(buffer) {
  const text = String.fromCharCode(...new Uint8Array(buffer));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
