"""Admissions to a call (docs/protocol.md section 5.13): the words that come beside a list, followed from this user's own word to the root."""

from base64 import b64decode

import layouts
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed25519
from layouts import b64


class Admissions:
    """The words of one call. `root` is this user for the device that started the call; for others it is found."""

    def __init__(self, call, devices, root=None):
        self.call, self.devices, self.root = call, devices, root
        self.let_in, self.words, self.listed, self.inviter = {}, {}, set(), None

    def word_for(self, user):
        """A word by which this device lets a user in."""
        signed = layouts.admission_bytes(self.call, self.devices.fingerprint, user)
        return {"user": user, "fingerprint": b64(self.devices.fingerprint), "sigAlg": "ES256", "signature": b64(self.devices.sign.sign(signed))}

    def words_for(self, users):
        return [self.word_for(user) for user in dict.fromkeys(users)]

    def ring(self, event):
        """From now on only a word by `from` counts for this user."""
        self.inviter = event["from"]
        self.take(event)

    def take(self, body, entries=()):
        """Keeps the words and signers of a ring, an announcement or a reply to `keys/list`, and the list's devices."""
        for signer in body.get("signers", [])[:8256]:
            self.devices.learn(signer)
        self.listed |= {entry["fingerprint"] for entry in entries}
        for word in body.get("admissions", [])[:8256]:
            self.words.setdefault((word.get("user"), word.get("link") if "user" not in word else None), []).append(word)

    def unknown_users(self, entries):
        """The listed users whose devices' keys are needed and not known: look them up, and call `judge` again."""
        words = [word for words in self.words.values() for word in words]
        signers = {word["fingerprint"] for word in words if "sigAlg" in word} | {word["admittedBy"]["fingerprint"] for word in words if "admittedBy" in word}
        return sorted({entry["user"] for entry in entries if entry["fingerprint"] in signers and b64decode(entry["fingerprint"]) not in self.devices.keys_of})

    def judge(self):
        """Finds the root, and everybody whom a chain of good words from it lets in. Only then words by their signers count."""
        good = {subject: [word for word in words if self.is_good(word)] for subject, words in self.words.items()}
        if not self.root:
            self.root = self.end_of_chain(good, self.devices.user)
        if not self.root:
            return
        self.let_in.setdefault(self.root, None)
        links, grew = {}, True
        while grew:
            grew = False
            for (user, link), words in good.items():
                for word in words:
                    is_open = self.signer_of(word) in self.let_in if "sigAlg" in word else word["link"] in links
                    if is_open and user and "sigAlg" not in word and user.startswith("guest~") and links[word["link"]]:
                        is_open = self.is_admitted(word)
                    if is_open and user and user not in self.let_in:
                        # A guest has one device.
                        self.let_in[user] = word["fingerprint"] if user.startswith("guest~") else None
                        grew = True
                    elif is_open and link and link not in links:
                        links[link] = word.get("waits", False)
                        grew = True

    def end_of_chain(self, good, user):
        """The user whose own word ends the chain of this user's."""
        seen = set()
        while user not in seen:
            seen.add(user)
            words = [word for word in good.get((user, None), []) if user != self.devices.user or not self.inviter or self.signer_of(word) == self.inviter]
            word = next(iter(words), None)
            if word and "sigAlg" not in word:
                word = next(iter(good.get((None, word["link"]), [])), None)
            if not word:
                return None
            if self.signer_of(word) == user:
                return user
            user = self.signer_of(word)
        return None

    def signer_of(self, word):
        return self.devices.owners.get(b64decode(word["fingerprint"]), (None, None))[0]

    def is_good(self, word):
        fingerprint, signature = b64decode(word["fingerprint"]), b64decode(word["signature"])
        if "sigAlg" not in word:
            link = b64decode(word["link"])
            try:
                ed25519.Ed25519PublicKey.from_public_bytes(link).verify(signature, layouts.link_join_bytes(self.call, link, fingerprint, word["user"]))
                return True
            except (InvalidSignature, ValueError):
                return False
        signer, user = self.signer_of(word), word.get("user", "")
        # Guests let nobody in, and are let in by links alone.
        if not signer or signer.startswith("guest~") or user.startswith("guest~"):
            return False
        key = self.devices.signer_key(word["fingerprint"], word["fingerprint"] in self.listed)
        if user:
            signed = layouts.admission_bytes(self.call, fingerprint, user)
        else:
            bytes_of = layouts.waiting_link_bytes if word.get("waits") else layouts.call_link_bytes
            signed = bytes_of(self.call, fingerprint, b64decode(word["link"]))
        return bool(key) and layouts.verify(key, signed, signature)

    def is_admitted(self, word):
        """Whether a member who is let in has admitted the guest who comes by a link whose guests wait."""
        by = word.get("admittedBy")
        signer = by and self.signer_of(by)
        if not signer or signer.startswith("guest~") or signer not in self.let_in:
            return False
        key = self.devices.signer_key(by["fingerprint"], by["fingerprint"] in self.listed)
        signed = layouts.guest_admission_bytes(self.call, b64decode(by["fingerprint"]), b64decode(word["link"]), b64decode(word["fingerprint"]), word["user"])
        return bool(key) and layouts.verify(key, signed, b64decode(by["signature"]))

    def is_uninvited(self, entry):
        """Without a root this device is in the call by the service's word, and judges nobody."""
        if not self.root:
            return False
        return entry["user"] not in self.let_in or self.let_in[entry["user"]] not in (None, entry["fingerprint"])
