"""Two users, a room, and one id that all of them use: each sees what is theirs, and no more."""

from __future__ import annotations

import twofold
from twofold import Access, AccessError, Owner

ann = Access(user="ann", rooms=("kitchen",))
ben = Access(user="ben", rooms=("kitchen",))
cleo = Access(user="cleo")

with twofold.open("scopes.db") as store:
    store.add("Ann's door code is 4711.", id="door", access=ann)
    store.add("Ben's door code is 0815.", id="door", access=ben)
    store.add("The kitchen's door code is 1234.", id="door", access=ann, scope="room")
    store.add("The main door has no code.", id="door")

    for name, access in (("ann", ann), ("ben", ben), ("cleo", cleo)):
        mine = store.view(access)  # asks as this user, and cannot ask as another
        print(f"{name} finds:")
        for hit in mine.search("door code"):
            print(f"  {hit.record.scope.value:8} {hit.text}")

    assert store.get("door", access=ben, owner=Owner.user("ann")) is None  # as if it did not exist

    try:
        store.update("door", text="The main door has a code now.", access=cleo)
    except AccessError as error:
        print(f"\ncleo may read the shared record but not change it: {error}")
