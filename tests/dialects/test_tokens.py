"""Token estimates: never below a real tokenizer's count, in linear time."""

from __future__ import annotations

import base64
import hashlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warmstart.dialects.tokens import estimate

HEX = hashlib.sha256(b"warmstart").hexdigest()
TEXTS = {
    "prose": "The quick brown fox jumps over the lazy dog, and nobody in the village was much surprised by it. " * 5,
    "question": "Could you please find out why the order total test fails, fix it, and tell me what was wrong?",
    "python": 'def total(items: list[Item], *, tax: float = 0.19) -> Decimal:\n    """Sum of all."""\n    return sum((i.price * i.count for i in items), start=Decimal(0)) * Decimal(1 + tax)\n',
    "typescript": "export const useCart = <T extends Item>(initial: T[] = []) => {\n  const [items, setItems] = useState<T[]>(initial);\n  return { items, add: (i: T) => setItems([...items, i]) };\n};\n",
    "rust": "impl<'a> Iterator for Tokens<'a> {\n    type Item = &'a str;\n    fn next(&mut self) -> Option<Self::Item> { self.rest.split_once(' ').map(|(a, b)| { self.rest = b; a }) }\n}\n",
    "sql": "SELECT o.id, count(*) AS n FROM orders o LEFT JOIN items i ON i.order_id = o.id WHERE o.created >= '2026-10-01' GROUP BY o.id HAVING n > 3;",
    "shell": "$ git log --oneline -n 3 && uv run pytest -q tests/test_cart.py::TestTotal -x 2>&1 | tail -n 20",
    "json": json.dumps({"order": {"id": "W1234567", "items": [{"sku": f"A-{n}", "count": n, "price": n * 1.5} for n in range(9)]}}),
    "json indented": json.dumps({"a": [{"b": None, "c": [True, False, {"d": "e"}]}] * 4}, indent=4),
    "json in json": json.dumps({"arguments": json.dumps({"command": 'grep -rn "total" src/ | head', "cwd": "/home/dev/shop"})}),
    "log": "2026-10-01T10:00:00.123Z ERROR [worker-7] shop.cart: total() failed for order=#W7654321 (attempt 3/5): ValueError\n" * 4,
    "traceback": 'Traceback (most recent call last):\n  File "/home/dev/shop/cart.py", line 42, in total\n    raise ValueError(f"bad {x!r}")\nValueError: bad None\n',
    "listing": "drwxr-xr-x  2 root root  4096 Oct  1 10:00 bin\n-rw-r--r--  1 dev  dev  18231 Oct  1 10:00 package-lock.json\n" * 4,
    "diff": "--- a/cart.py\n+++ b/cart.py\n@@ -1,4 +1,5 @@\n-    return a+b\n+    return a + b  # spaced\n",
    "markdown": "# Title\n\n- **bold** and `code`\n- [link](https://example.com/a/b?c=d&e=f#g)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n",
    "html": '<div class="cart__item cart__item--active" data-id="42"><a href="/shop?id=42&amp;x=1">Buy&nbsp;now</a></div>',
    "numbers": "3.14159265358979 2718281828 1,000,000 0xDEADBEEF 1e-10 192.168.0.1 2026-10-01 " * 3,
    "german": "Die Prüfung der Gesamtsumme schlägt fehl; bitte finden Sie heraus, warum, und beheben Sie den Fehler in der Bestellübersicht. ",
    "french": "L'été dernier, nous avons dû réparer la chaîne d'intégration; ça n'a pas été une mince affaire. " * 2,
    "russian": "Быстрая коричневая лиса прыгает через ленивую собаку, и никто не удивлён. " * 2,
    "chinese": "请找出订单总额测试失败的原因，修复它，并告诉我哪里出了问题。" * 3,
    "japanese": "注文合計のテストが失敗する原因を調べて、修正してください。" * 3,
    "korean": "주문 합계 테스트가 실패하는 이유를 찾아서 고쳐 주세요. " * 3,
    "emoji": "🚀 deployed ✅ tests 🎉🎉 done 👍 " * 4,
    "hex": " ".join([HEX, HEX[::-1], HEX[:40]]),
    "uuid": "9bffddcc-2cad-4dc5-af66-528454d082a1 0199a506-4e61-7de1-ba31-31ee1d1e03d8",
    "base64": base64.b64encode(b"".join(hashlib.sha256(bytes([n])).digest() for n in range(12))).decode(),
    "capitals": "WARNING: DO NOT USE SELECT FOR UPDATE NOWAIT IN HTTP_REQUEST_HANDLER_CLASS",
    "camel": "getUserAccountSettingsByIdentifier HTTPServerErrorResponse xmlHttpRequestFactoryBean",
    "white space": "a\n\n\n\n        b\t\t\tc     d\n" * 5,
    "punctuation": "!!! ??? ... ===> <=== ::: ;;; --- *** ### @@@ $$$ %%% ^^^ &&& ((([[[{{{" * 2,
    "one": "x",
    "empty": "",
}  # fmt: skip


@pytest.mark.slow  # loads 41 MB of vocabulary
@pytest.mark.parametrize("name", TEXTS)
def test_never_below_a_real_tokenizer(name):
    import bpe_openai as bpe

    text = TEXTS[name]
    for encoding in ("o200k_base", "cl100k_base"):
        real = len(bpe.get_encoding(encoding).encode(text))
        assert estimate(text) >= real, (encoding, name, estimate(text), real)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prose", "python", "json", "log", "question"])
def test_not_absurdly_above(name):
    import bpe_openai as bpe

    real = len(bpe.get_encoding("o200k_base").encode(TEXTS[name]))
    assert estimate(TEXTS[name]) <= 2 * real + 5


def test_plausible_without_a_tokenizer():
    """Four letters a token is usual in English, and at most a few tokens a character are possible at all."""
    for name, text in TEXTS.items():
        assert estimate(text) >= len(text.split()), name
        assert estimate(text) <= 2 * len(text) + 2, name
    assert 100 < estimate(TEXTS["prose"]) < 200


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_costs_more(one, other):
    """Joined text costs at least as much as each part and at most both; the joint may save or cost a token or two."""
    both = estimate(one + other)
    assert both >= max(estimate(one), estimate(other)) - 3
    assert both <= estimate(one) + estimate(other) + 3


@given(st.text(max_size=300))
def test_any_text_has_an_estimate(text):
    assert estimate(text) >= 2
    assert estimate(text) == estimate(text)


@pytest.mark.parametrize(
    "piece", ["a", "A", "Ab", " ", "\n", "1", "\\", '"', "word ", "é", "部", "a1-", "\t \n", "x" * 31 + "!"]
)
def test_linear(piece):
    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        began = time.process_time()
        estimate(text)
        return time.process_time() - began

    small, large = (min(seconds(size) for _ in range(3)) for size in (25_000, 200_000))
    assert large < max(40 * small, 0.05), "eight times the text, not sixty-four times the time"
    assert large < 5
