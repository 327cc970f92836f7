/* Who may write: fence, claim, yield by release, declaring dead, and commit, for two nodes and one entity (docs/architecture.md, "A cluster in virtual time").
 *
 * Each function of the store is several steps with the locks that PostgreSQL takes: `fence` and `declareDead` update the row of a node and hold its lock to the end of their transaction;
 * `claim` and `release` hold the lock of the entity's row. A watcher may take a node for dead at any moment, rightly or not. A node may stop between any two steps.
 *
 * spin -a fence.pml && gcc -O2 -DSAFETY -o pan pan.c && ./pan
 * Each MUTANT_ makes one mistake, and then there is an error.
 */
#define NODES 2
#define NOBODY 9

/* Rows. */
bool dead[NODES];
byte commits[NODES];
byte owner = NOBODY;
byte value = 0;         /* what is stored of the entity */

/* Row locks: NOBODY, or the session that holds it. Sessions: a node's writer is its number, the watcher of it is NODES + its number. */
byte nodeLock[NODES] = NOBODY;
byte ownerLock = NOBODY;

/* What each node has in memory. */
bool holds[NODES];
byte known[NODES];

/* The newest value that anybody was told, and by whom the entity was last written in this ownership. */
byte told = 0;

inline lockNode(n, session) { atomic { nodeLock[n] == NOBODY -> nodeLock[n] = session } }
inline unlockNode(n) { nodeLock[n] = NOBODY }

/* A transaction begins: the row of the node stays locked until it ends. */
inline fence(me) {
#ifdef MUTANT_FENCE_WITHOUT_LOCK
  atomic { isIn = !dead[me] }
#else
  lockNode(me, me);
#ifdef MUTANT_FENCE_WITHOUT_DEAD
  atomic { isIn = true; commits[me] = (commits[me] + 1) % 4 }
#else
  atomic { isIn = !dead[me]; if :: isIn -> commits[me] = (commits[me] + 1) % 4 :: else fi }
#endif
  if :: !isIn -> unlockNode(me) :: else fi
#endif
}

inline commit(me) {
  atomic {
    if :: nodeLock[me] == me -> unlockNode(me) :: else fi;
    if :: ownerLock == me -> ownerLock = NOBODY :: else fi
  }
}

proctype Node(byte me) {
  bool isIn;
  byte last;
  byte writes = 0;
  byte claims = 0;
  do
  :: !holds[me] && claims < 3 ->
     /* claim */
     claims++;
     fence(me);
     if
     :: !isIn -> break
     :: else
     fi;
     atomic { ownerLock == NOBODY -> ownerLock = me };
#ifdef MUTANT_CLAIM_FROM_THE_LIVING
     owner = me;
#else
     if
     :: owner == NOBODY || owner == me -> owner = me
     :: owner != NOBODY && owner != me && dead[owner] -> owner = me
     :: else -> skip
     fi;
#endif
     last = owner;
     commit(me);
     /* The records are read after the commit. */
     if
     :: last == me ->
        /* They are complete, or the node was replaced meanwhile and does not know it. */
        atomic { known[me] = value; assert(owner != me || dead[me] || known[me] >= told) };
        holds[me] = true
     :: else
     fi
  :: holds[me] && writes < 3 ->
     /* a change, and its answer after the commit */
     writes++;
     fence(me);
     if
     :: !isIn -> holds[me] = false; break
     :: else
     fi;
     /* Nobody else wrote since this node read. */
     assert(value == known[me]);
#ifdef MUTANT_ANSWER_BEFORE_COMMIT
     known[me]++;
     told = known[me];
     if
     :: skip
     :: commit(me); holds[me] = false; break  /* the connection is lost: rolled back */
     fi;
     value = known[me];
     commit(me)
#else
     known[me]++;
     value = known[me];
     atomic { commit(me); told = (told > known[me] -> told : known[me]) }
#endif
  :: holds[me] ->
     /* release, in the transaction of the last change */
     fence(me);
     if
     :: !isIn -> holds[me] = false; break
     :: else
     fi;
     atomic { ownerLock == NOBODY -> ownerLock = me };
     holds[me] = false;
     /* Nobody else can have it while this transaction holds the row of a node that lives. */
     assert(owner == me);
     owner = NOBODY;
     commit(me)
  :: break   /* it stops for ever */
  od
}

/* Takes the node for dead after it saw a number of commits twice, however wrong that is. */
proctype Watcher(byte who) {
  byte seen = commits[who];
#ifdef MUTANT_DECLARE_WITHOUT_LOCK
  dead[who] = true;
#else
  lockNode(who, NODES + who);
  atomic {
    if
    :: !dead[who] && commits[who] == seen -> dead[who] = true
    :: else
    fi
  };
  unlockNode(who);
#endif
}

init {
  atomic {
    run Node(0);
    run Node(1);
    run Watcher(0);
    run Watcher(1)
  }
}
