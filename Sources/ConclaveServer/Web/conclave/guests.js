// Guests: people without an account, who came into one call by a link (protocol section 4, "Guests").

/** The user id says it, and is part of every fingerprint and list: the server cannot take the mark away without making another user. */
export const isGuest = (user) => typeof user === 'string' && user.startsWith('guest~');
