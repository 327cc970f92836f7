// Guests: people without an account, who came into one call by a link (protocol section 4, "Guests").

/** It is part of the user id, and so of every fingerprint and list: the server cannot remove the mark without making another user. */
export const isGuest = (user) => typeof user === 'string' && user.startsWith('guest~');
