"""Which folders are one project, where the disk says nothing."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.projects.evidence import compare_paths, is_specific
from warmstart.projects.infer import FolderFacts, find_rivals, place_folders

SHOP = frozenset(
    (
        "src/cart/discount.py",
        "src/cart/voucher.py",
        "src/orders/refund.py",
        "src/orders/invoice.py",
        "tests/test_refund.py",
    )
    + ("docs/vouchers.md", "README.md", "package.json", "src/index.ts")
)
BOILERPLATE = frozenset(
    ("README.md", "package.json", "tsconfig.json", "src/index.ts", "src/app.py", "src/main.py", "tests/test_app.py")
    + (
        "src/app/page.tsx",
        "src/app/layout.tsx",
        "src/lib/utils.ts",
        "src/components/ui/button.tsx",
        "src/api/routes.py",
    )
    + (
        "src/components/ui/card.tsx",
        ".github/workflows/release.yml",
        "src/models/user.py",
        "Dockerfile",
        "docs/index.md",
    )
)


def place(*facts: FolderFacts) -> dict[str, str]:
    return {folder: placement.project for folder, placement in place_folders(facts).items()}


def folder(path: str, paths: frozenset[str] = frozenset(), **more: object) -> FolderFacts:
    return FolderFacts(path, paths=paths, **more)


def test_the_same_repository_on_two_machines_is_one_project():
    one, two = folder("/home/ann/code/shop", SHOP), folder("/Users/bob/work/shop", SHOP - {"docs/vouchers.md"})
    assert set(place(one, two).values()) == {"/home/ann/code/shop"}


def test_a_common_name_is_no_evidence():
    other = frozenset(f"src/pages/{name}.tsx" for name in ("booking", "guest", "room", "calendar", "season", "tariff"))
    facts = [folder("/home/ann/a/app", SHOP), folder("/home/ann/b/app", other), folder("/home/ann/c/app")]
    assert len(set(place(*facts).values())) == 3


def test_files_that_every_project_has_are_no_evidence():
    assert not any(map(is_specific, BOILERPLATE))
    one, two = (
        folder("/a/one/app", BOILERPLATE | {"src/cart.py"}),
        folder("/a/two/app", BOILERPLATE | {"src/guests.py"}),
    )
    assert len(set(place(one, two).values())) == 2


def test_a_few_shared_files_among_many_others_are_no_evidence():
    rest = frozenset(f"src/hotel{n}/room{n}.py" for n in range(20))
    assert compare_paths(SHOP, SHOP | rest).is_enough
    few = frozenset(sorted(path for path in SHOP if is_specific(path))[:4])
    assert not compare_paths(SHOP | frozenset(f"lib/x{n}/bed{n}.py" for n in range(20)), few | rest).is_enough


def test_folders_of_different_names_stay_apart():
    assert len(set(place(folder("/a/client-one", SHOP), folder("/a/client-two", SHOP)).values())) == 2


def test_two_remotes_are_never_one_project():
    facts = [
        folder("/a/shop", SHOP, remote="github.com/ann/shop"),
        folder("/b/shop", SHOP, remote="github.com/bob/shop"),
    ]
    assert set(place(*facts).values()) == {"github.com/ann/shop", "github.com/bob/shop"}


def test_a_folder_without_a_remote_joins_the_known_repository_by_its_files():
    known = folder("/a/shop", SHOP, remote="github.com/org/shop")
    placements = place_folders([known, folder("/b/shop", SHOP), folder("/c/shop", BOILERPLATE)])
    assert placements["/b/shop"].project == "github.com/org/shop"
    assert placements["/b/shop"].by == "paths"
    assert placements["/c/shop"].project == "/c/shop"


@pytest.mark.parametrize("place_of_worktrees", [".claude/worktrees", ".worktrees", ".codex/worktrees"])
def test_worktrees_in_a_repository_belong_to_it(place_of_worktrees):
    placements = place_folders([folder("/a/shop"), folder(f"/a/shop/{place_of_worktrees}/fix/src")])
    worktree = placements[f"/a/shop/{place_of_worktrees}/fix/src"]
    assert (worktree.project, worktree.root) == ("/a/shop", f"/a/shop/{place_of_worktrees}/fix")


def test_worktrees_kept_apart_are_one_project_and_join_the_clone_by_its_files():
    names = [f"/Users/me/conductor/workspaces/shop/{city}" for city in ("oslo", "lima", "pisa")]
    assert len(set(place(*map(folder, names)).values())) == 1
    parts = [SHOP - {"docs/vouchers.md"}, frozenset(), frozenset()]
    facts = [folder(name, paths) for name, paths in zip(names, parts, strict=True)]
    assert set(place(*facts, folder("/Users/me/code/shop", SHOP)).values()) == {"/Users/me/code/shop"}
    other = "/Users/me/conductor/workspaces/hotel/oslo"
    assert place(*facts, folder(other))[other] != place(*facts)[names[0]]


def test_a_plain_worktrees_folder_may_hold_several_repositories():
    facts = [folder("/a/code/worktrees/shop-fix", SHOP), folder("/a/code/worktrees/hotel-fix"), folder("/a/code")]
    assert len(set(place(*facts).values())) == 3
    facts = [folder("/a/shop/worktrees/fix", SHOP), folder("/a/shop", SHOP)]
    assert set(place(*facts).values()) == {"/a/shop"}


def test_a_subfolder_belongs_to_the_known_repository_above_it():
    placements = place_folders([folder("/a/shop", remote="github.com/org/shop"), folder("/a/shop/apps/web")])
    assert placements["/a/shop/apps/web"].project == "github.com/org/shop"
    assert placements["/a/shop/apps/web"].root == "/a/shop"


def test_a_subfolder_whose_sessions_touch_the_files_above_belongs_there():
    above = folder(
        "/a/shop", frozenset(("package.json", "apps/web/cart.ts", "apps/web/voucher.ts", "apps/web/refund.ts"))
    )
    below = folder("/a/shop/apps/web", frozenset(("cart.ts",)), outside=frozenset(("/a/shop/package.json",)))
    assert place(above, below)["/a/shop/apps/web"] == "/a/shop"


def test_a_folder_that_holds_projects_is_none_of_them():
    container = folder(
        "/a/code", frozenset(("shop/src/cart/voucher.py", "shop/src/cart/discount.py", "shop/b/refund.py"))
    )
    facts = [container, folder("/a/code/shop", SHOP), folder("/a/code/hotel", BOILERPLATE)]
    assert len(set(place(*facts).values())) == 3


def test_a_submodule_with_its_own_remote_is_its_own_project():
    facts = [
        folder("/a/shop", SHOP, remote="github.com/org/shop"),
        folder("/a/shop/vendor/library", SHOP, remote="github.com/org/library"),
    ]
    assert len(set(place(*facts).values())) == 2


@pytest.mark.parametrize("broad", ["/", "/tmp", "/home/ann", "/Users/ann", "C:\\Users\\Ann"])
def test_home_folders_stay_what_they_are(broad):
    below = "/tmp/x" if broad in ("/", "/tmp") else f"{broad}/notes"
    placements = place_folders([folder(broad, SHOP, remote="github.com/ann/dotfiles"), folder(below)])
    assert (placements[broad].project, placements[broad].root) == (broad, None)
    assert placements[below].project == below


def test_clones_in_folders_of_other_names_share_the_root_commit():
    facts = [folder("/a/shop", commit="shop@0123456789ab"), folder("/b/copy", commit="copyofshop@0123456789ab")]
    assert set(place(*facts).values()) == {"shop@0123456789ab"}


def test_a_single_folder_keeps_its_name():
    assert place(folder("/home/ann/shop/", SHOP)) == {"/home/ann/shop/": "/home/ann/shop/"}
    assert find_rivals([folder("/home/ann/shop"), folder("/home/ann/hotel")]) == set()


def test_macs_two_names_of_a_temporary_folder_are_one():
    assert len(set(place(folder("/private/tmp/shop"), folder("/tmp/shop")).values())) == 1


FACTS = [
    folder("/home/ann/shop", SHOP),
    folder("/Users/bob/shop", SHOP - {"docs/vouchers.md"}),
    folder("/c/shop", BOILERPLATE),
    folder("/Users/bob/shop/.claude/worktrees/fix"),
    folder("/Users/bob/conductor/workspaces/shop/oslo", SHOP),
    folder("/Users/bob/conductor/workspaces/shop/lima"),
    folder("/Users/bob/shop/apps/web", frozenset(("x.ts",))),
]


@pytest.mark.slow
def test_the_order_of_folders_changes_nothing():
    expected = place_folders(FACTS)
    for order in itertools.permutations(FACTS):
        assert place_folders(order) == expected


_paths = st.frozensets(st.sampled_from(sorted(SHOP | BOILERPLATE)), max_size=12)
_places = ("/a/shop", "/b/shop", "/a/shop/web", "/a/shop/.worktrees/x", "/a/hotel", "/a", "/c/worktrees/shop", "/root")
_facts = st.builds(
    FolderFacts,
    folder=st.sampled_from(_places),
    remote=st.sampled_from([None, None, "github.com/org/shop", "github.com/org/hotel"]),
    commit=st.sampled_from([None, None, "shop@0123456789ab", "other@0123456789ab"]),
    paths=_paths,
)


@given(
    st.lists(_facts, unique_by=lambda fact: fact.folder, max_size=8).flatmap(
        lambda facts: st.tuples(st.just(facts), st.permutations(facts))
    )
)
def test_any_history_gives_the_same_projects_in_any_order(orders):
    facts, shuffled = orders
    expected = place_folders(facts)
    assert place_folders(shuffled) == expected
    assert set(expected) == {fact.folder for fact in facts}
