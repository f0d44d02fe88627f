"""Constructs of Jinja2 that templates of public models use, one by one, and templates made of them at random, for
chat_compare.py. What is not among them is refused by name (src/templates/refused.cpp)."""

RECORD = {
    "messages": [{"role": "user", "content": " Hello wörld \n"},
                 {"role": "assistant", "content": "one\ntwo\n\n  three", "n": 3},
                 {"role": "tool", "content": "", "tags": ["b", "A", "c", "a"]}],
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": [True, None, 2.5, "ü\"\\\n\u0001"]}}}],
    "chat_template_kwargs": {
        "s": "The quick-brown fox's (jump)", "u": "Straße ΑΣ 你好\u3000x", "t": " \t pad \n", "e": "", "n": 7, "neg": -3, "f": 2.5,
        "big": 12345678901234, "z": 0, "yes": True, "no": False, "nil": None, "l": [3, 1, 2], "m": ["b", "A", "c"],
        "d": {"b": 2, "A": 1, "c": {"x": [1, 2, 3]}, "items": "own"}, "ds": [{"k": 1, "v": "x"}, {"k": 2, "v": "y"}, {"k": 1, "w": 0}],
        "floats": [0.1, 1e16, 1e-5, 123456.789, -0.0, 3.0, 1e22, 1e15], "nested": [[1, [2, "a'b"]], {"q": "\""}], "csv": "a, b,,c"},
}

OBJECTS = ["s", "u", "t", "e", "n", "neg", "f", "z", "yes", "no", "nil", "l", "m", "d", "ds", "floats", "nested", "csv", "missing",
           "messages", "tools", "(1, 2)", "()", "(n,)", "{}", "[]", "{'a': 1, 2: 'b', none: [true]}", "range(3)", "range(5, 0, -2)",
           "d.items()", "d.keys()", "d['c'].values()", "namespace(a=1, b='x')", "dict(a=1, b=[2])"]


def everywhere(pattern):
    return [pattern.replace("@", "(%s)" % name) for name in OBJECTS]


def pairs(pattern, names):
    return [pattern.replace("@", "(%s)" % a).replace("$", "(%s)" % b) for a in names for b in names]


BASIC = ["s", "e", "n", "neg", "f", "z", "yes", "nil", "l", "d", "(1, 2)", "missing", "'q'", "0.0", "[1]", "2"]

CONSTRUCTS = {
    "print": everywhere("{{ @ }}"),
    "string": everywhere("{{ @ | string }}"),
    "truth": everywhere("{{ 'T' if @ else 'F' }}{{ not @ }}{{ @ and 1 }}{{ @ or 2 }}"),
    "json": everywhere("{{ @ | tojson }}") + ["{{ tools | tojson(indent=2) }}", "{{ d | tojson(indent=4) }}",
        "{{ d | tojson(separators=(',', ':')) }}", "{{ u | tojson(ensure_ascii=true) }}", "{{ u | tojson(true) }}",
        "{{ [] | tojson(indent=1) }}{{ {} | tojson(indent=1) }}{{ [[]] | tojson(indent=0) }}",
        "{{ '\\x7f\\u2028\\U0001F600</a>&' | tojson }}", "{{ '\\x7f\\u2028\\U0001F600' | tojson(ensure_ascii=true) }}",
        "{{ {1: 2, true: 3, none: 4} | tojson }}", "{{ floats | tojson }}", "{{ tools[0] | tojson(indent=none) }}",
        "{{ d | tojson(false, 2) }}"],
    "length": everywhere("{{ @ | length }}"),
    "list": everywhere("{{ @ | list }}"),
    "first last": everywhere("{{ @ | first }}") + everywhere("{{ @ | last }}"),
    "join": everywhere("{{ @ | join('-') }}") + ["{{ l | join }}", "{{ l | join(d=0) }}"],
    "case": [line for name in ("upper", "lower", "capitalize", "title") for line in everywhere("{{ @ | %s }}" % name)]
            + ["{{ u.%s() }}{{ s.%s() }}" % (name, name) for name in ("upper", "lower", "capitalize", "title")]
            + ["{{ 'ǆ größe ÉÀ привет 你好' | %s }}" % name for name in ("upper", "lower", "title", "capitalize")],
    "trim": everywhere("[{{ @ | trim }}]") + ["[{{ t.strip() }}{{ t.lstrip() }}{{ t.rstrip() }}]", "{{ s.strip('Te)(') }}",
            "{{ s.lstrip('The ') }}{{ s.rstrip(')pm') }}", "{{ u.strip('Sxü') }}", "{{ t.strip(none) }}",
        "{{ t.strip(1) }}"],
    "numbers": everywhere("{{ @ | int }}") + ["{{ '%s' | int }}" % x for x in ("12", " 12 ", "1_000", "-5", "+5")],
    "arithmetic": [line for op in ("+", "-", "*", "%") for line in pairs("{{ @ %s $ }}" % op, BASIC)],
    "concat": pairs("{{ @ ~ $ }}", BASIC),
    "compare": [line for op in ("==", "!=", "<", "<=", ">", ">=", "in", "not in") for line in pairs("{{ @ %s $ }}" % op,
        BASIC)]
            + ["{{ 'a' < 'B' }}{{ 'é' > 'z' }}",
               "{{ {'a': 1} == {'a': true} }}{{ 'o' in s }}{{ 'b' in d }}{{ 3 in l }}{{ 2 in range(3) }}{{ 'zz' not in s }}",
        "{{ none in [none] }}{{ missing in [1] }}{{ missing == missing2 }}"],
    "signs": everywhere("{{ -@ }}") + ["{{ 1 - -1 }}{{ 7 % -2 }}{{ -7 % 2 }}{{ -7 % -2 }}"],
    "attribute": [line for name in ("role", "items", "x", "b", "a", "keys", "upper",
        "_x") for line in everywhere("{{ (@.%s) is defined }}" % name)]
            + everywhere("{{ @.zz }}") + everywhere("{{ @.zz.yy }}")
        + ["{{ d.items() | list }}{{ d['items'] }}{{ d.b }}{{ d.c.x[1] }}",
        "{{ d.get('b') }}{{ d.get('q') }}{{ d.get('q', 5) }}"],
    "item": everywhere("{{ @[0] }}") + everywhere("{{ @[-1] }}") + everywhere("{{ @['b'] }}") + everywhere("{{ @[99] }}")
        + everywhere("{{ @[none] }}"),
    "slice": [line for cut in ("1:", ":2", "::-1", "-2:", ":-1", "1:10:2", "5:1:-2", ":", "::2",
        "-100:100") for line in everywhere("{{ @[%s] }}" % cut)]
            + ["{{ l[::0] }}", "{{ l['a':] }}", "{{ u[2:6] }}{{ u[-3:] }}{{ u[::-1] }}{{ u[::2] }}"],
    "tests": [line for name in ("defined", "undefined", "none", "boolean", "true", "false", "integer", "float", "number",
        "string", "mapping", "sequence", "iterable", "not none", "not string") for line in everywhere("{{ @ is %s }}" % name)]
        + ["{{ d is mapping and d.b is number or no }}", "{{ 1 if n is integer else 2 }}"],
    "default": everywhere("{{ @ | default('D') }}") + everywhere("{{ @ | default('D', true) }}") + ["{{ missing | d }}",
        "{{ nil | d(boolean=true, default_value=4) }}"],
    "sort": everywhere("{{ @ | sort }}")
        + ["{{ ds | sort(attribute='k') | map(attribute='v') | list }}", "{{ d | dictsort }}", "{{ {'b': 1, 'A': 2, 'ä': 3} | dictsort }}",
        "{{ [3, 'a'] | sort }}"],
    "unique": everywhere("{{ @ | unique | list }}") + ["{{ ['a', 'A', 'b', 'a'] | unique | list }}"],
    "map": ["{{ m | map('upper') | list }}", "{{ ds | map(attribute='k') | list }}",
        "{{ ds | map(attribute='v') | list | length }}", "{{ l | map('string') | join('+') }}",
        "{{ tools | map(attribute='function.name') | list }}", "{{ m | map('replace', 'b', 'x') | list }}",
        "{{ m | map('nope') | list }}", "{{ m | map | list }}", "{{ nil | map('upper') | list }}",
        "{{ 5 | map('upper') | list }}", "{{ l | map('default', 1) | list }}"],
    "select": ["{{ [0, 1, '', 'a', none] | select | list }}{{ [0, 1, '', 'a'] | reject | list }}",
        "{{ l | select('equalto', 1) | list }}{{ l | reject('equalto', 1) | list }}{{ l | select('in', [1, 2]) | list }}",
        "{{ ds | selectattr('v') | list }}{{ ds | rejectattr('v') | list }}{{ ds | selectattr('k', 'equalto', 1) | list }}{{ ds | rejectattr('k', '==', 1) | list }}{{ ds | selectattr('v', 'defined') | list | length }}",
        "{{ 'yes' if l | select('eq', 9) else 'no' }}", "{{ (l | select('eq', 9) | list) or 'none' }}", "{{ l | select('nope') | list }}",
        "{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='role') | join(',') }}", "{{ nil | select | list }}"],
    "generators": ["{% set g = l | map('string') %}{{ g | join }}{{ g | join }}|{{ g | list }}",
        "{% set g = l | select %}{{ g | first }}{{ g | list }}", "{{ (l | map('string')) | length }}",
        "{% for x in l | map('string') %}{{ x }}{{ loop.length }}{{ loop.last }}{% endfor %}",
                   "{% set g = d | items %}{% for k, v in g %}{{ k }}{% endfor %}{% for k, v in g %}{{ k }}{% endfor %}",
        "{% set x = 5 | items %}ok", "{% set x = m | map('nope') %}ok", "{{ 1 in (l | map('int')) }}"],
    "replace": ["{{ s | replace('o', '0') }}{{ s | replace('q', '') }}{{ s | replace('', '.') }}{{ s | replace('o', '0', 1) }}{{ 1212 | replace(1, 'x') }}{{ u | replace('', '-', 3) }}{{ e | replace('', 'x') }}{{ s.replace('o', '0', 1) }}{{ u.replace('', '_') }}{{ s.replace('fox', 'ox') }}"],
    "indent": ["{{ messages[1].content | indent }}", "{{ messages[1].content | indent(2, true) }}", "{{ messages[1].content | indent(4, first=true) }}",
        "{{ 'a\\nb\\n' | indent(1) }}|", "{{ 5 | indent }}", "{{ '' | indent }}|{{ '' | indent(1, true) }}|"],
    "split": ["{{ csv.split(',') }}{{ csv.split(', ') }}{{ csv.split(',', 1) }}", "{{ ''.split() }}{{ ''.split(',') }}", "{{ csv.split('') }}",
        "{{ t.split() }}{{ ' a  b c '.split() }}{{ ' a  b c '.split(none, 1) }}{{ ' a b '.split(' ') }}{{ u.split() }}",
        "{{ csv.split(maxsplit=1, sep=',') }}", "{{ '</a>x</a>y'.split('</a>')[-1] }}{{ 'ab'.split('b', 0) }}"],
    "methods": ["{{ s.startswith('The') }}{{ s.endswith(')') }}{{ s.startswith(('x', 'T')) }}{{ s.startswith(1) }}", "{{ l.append(4) }}",
        "{{ d.pop('b') }}", "{{ d.update({}) }}", "{{ s.nope() }}", "{{ d.keys() | list }}{{ d.values() | list | length }}{{ d.items() | length }}"],
    "other filters": ["{{ s | safe }}{{ 5 | safe }}", "{{ d | items | list }}{{ missing | items | list }}", "{{ d | count }}", "{{ 'x' | string | length }}"],
    "literals": ["{{ 'a' 'b' \"c\" }}{{ '\\n\\t\\\\\\'\\x41\\u00e9\\101\\q' }}{{ \"it's\" }}{{ [1, 2,] }}{{ (1,) }}{{ 1, 2 }}{{ {'a': 1,} }}{{ none }}{{ None }}{{ True }}{{ false }}",
        "{{ 01 }}", "{{ 'ü' 'ß' }}",
        "{{ {'a': {'b': 1}}}}"],
    "conditions": ["{{ 'a' if yes }}{{ 'a' if no }}|{{ 'a' if no else 'b' if no else 'c' }}", "{{ (1 if yes else 2) + 1 }}",
        "{{ ('x' if no) is defined }}", "{{ ('x' if no).y }}",
        "{% if no %}1{% elif nil %}2{% elif n %}3{% else %}4{% endif %}", "{% if not no and not (nil or e) %}x{% endif %}",
        "{% if n == 7 %}{% endif %}", "{% if n: %}colon{% endif %}"],
    "loops": ["{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
        "{% for x in [] %}a{% else %}none{% endfor %}{% for x in missing %}a{% else %}m{% endfor %}",
              "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for c in u %}[{{ c }}]{% endfor %}",
        "{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{{ loop.last }}{% else %}no{% endfor %}",
        "{% for x in l if x > 9 %}{{ x }}{% else %}no{% endfor %}",
        "{% for a, b in [(1, 2), [4, 5], 'xy'] %}{{ a }}{{ b }}{% endfor %}",
              "{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% else %}e{% endfor %}",
        "{% for x in nil %}{% endfor %}", "{% for x in 5 %}{% endfor %}", "{% for a, b in l %}{% endfor %}",
        "{% for x in l %}{% for y in m %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
              "{% for x in range(3) %}{{ x }}{% endfor %}{% for x in range(10, 0, -3) %}{{ x }},{% endfor %}{{ range(2, 8, 2)[1] }}{{ range(3) | list }}",
        "{% for x in range(1000000) %}{% endfor %}",
        "{% set ns = namespace(stop=false) %}{% for x in range(6) if not ns.stop %}{{ x }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
        "{% set ns = namespace(stop=false) %}{% for x in range(6) if not ns.stop %}{{ x }}{{ loop.last }}{% if x == 2 %}{% set ns.stop = true %}{% endif %}{% endfor %}",
        "{% for x in l %}{{ x }}{% endfor %}{{ x }}", "{{ loop is defined }}"],
    "scopes": ["{% set x = 1 %}{% for i in l %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }}",
        "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
        "{% for i in l %}{{ q }}{% set q = i %}{{ q }}{% endfor %}{{ q }}", "{% if no %}{% set n = 5 %}{% endif %}{{ n }}",
        "{% if yes %}{% set n = 5 %}{% endif %}{{ n }}",
        "{% for i in l %}{% if i == 1 %}{% set n = 5 %}{% endif %}{{ n }}{% endfor %}{{ n }}",
        "{% for i in l %}{{ n }}{% endfor %}{% set n = 1 %}{{ n }}",
               "{% macro a() %}{{ n }}{% endmacro %}{{ a() }}{% set n = 1 %}{{ a() }}",
        "{{ n }}{% macro a() %}{{ n }}{% endmacro %}{{ a() }}{% set n = 1 %}{{ a() }}",
        "{% set messages = messages[1:] %}{{ messages | length }}", "{% set n = n + 1 %}{{ n }}",
        "{% set a = 1, 2 %}{{ a }}", "{% for x in l %}{% set s = s ~ x %}{{ s }}{% endfor %}",
               "{% if yes %}{% if no %}{% set y = 1 %}{% else %}{% set y = 2 %}{% endif %}{% endif %}{{ y }}",
        "{% for x in l %}{% if x == 3 %}{% set v = x %}{% elif x == 1 %}{% set w = x %}{% endif %}{{ v }}{{ w }};{% endfor %}",
        "{% for role in m %}{% set role = role | upper %}{{ role }}{% endfor %}{{ role }}",
        "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}",
        "{% set yes = no %}{% for i in l %}{% if yes %}{% set z = 1 %}{% endif %}{{ z }}{% endfor %}"],
    "namespace": ["{% set ns = namespace(a=1) %}{% for i in l %}{% set ns.a = ns.a + i %}{% endfor %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}",
        "{% set ns = namespace(x=1, y=2) %}{{ ns.x }}{{ ns.y }}", "{% set nope.a = 1 %}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{% set ns = namespace(l=[]) %}{% set ns.l = ns.l + [1] %}{{ ns.l }}",
        "{% set d.b = 1 %}",
        "{{ namespace(a=1) == namespace(a=1) }}{{ dict(a=1) == {'a': 1} }}"],
    "blocks": ["{% set x %}a{{ n }}b{% endset %}[{{ x }}]{{ x | length }}",
        "{% filter upper %}abc{{ s }}{% endfilter %}",
        "{% filter replace('b', 'x') | upper %}abc{% endfilter %}", "{# comment #}x{#- y -#} z",
        "{% set ns = namespace() %}{% set ns.x %}q{% endset %}{{ ns.x }}",
        "{% for i in l %}{% set x %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endset %}{{ x }}{% endfor %}"],
    "macros": ["{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(c=1, a=2) }}{{ f() }}",
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(q=2) }}",
        "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
        "{% macro f(n) %}{{ f(n) }}{% endmacro %}{{ f(1) }}",
               "{% macro w(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call w('b') %}in {{ n }}{% endcall %}",
        "{% macro w() %}x{% endmacro %}{% call w() %}y{% endcall %}",
        "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(3) }}",
        "{% macro f() %}{% set n = 1 %}{{ n }}{% endmacro %}{{ f() }}{{ n }}",
        "{% for i in l %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
        "{% macro f() %} a {% endmacro %}[{{ f() | trim }}]{{ f() is string }}",
        "{% macro f(*a) %}{% endmacro %}", "{{ f() }}{% macro f() %}x{% endmacro %}",
        "{% macro f(x) %}{{ x.y }}{% endmacro %}{{ f() }}",
        "{% macro f(caller=none) %}{{ caller is none }}{% endmacro %}{{ f() }}"],
    "whitespace": ["a\n  {% if yes %}\n  b\n  {% endif %}\nc\n", "a\n  {%- if yes -%}\n  b\n  {%- endif -%}\nc",
        "a\n  {%+ if yes +%}\n  b\n  {%+ endif +%}\nc", "  {{ n }}  \n  {{- n -}}  \n x",
        "\t{% set x = 1 %}\t{% set y = 2 %}\n z", "a {% if yes %} b {% endif %} c\n\n",
        "{# c #}\n  {#- d -#}\n  x {# e #} \n y", "line\r\nnext\r{% if yes %}\r\nz{% endif %}\r\n\r\n",
        "{% for x in l %}\n  {{ x }}\n{% endfor %}\n\n", "{{ 'a\r\nb' }}",
        " {% if yes %}{% if yes %}\n {% endif %}\n{% endif %} x", "\n{%- if yes %}\n\n  a{% endif -%}\n\n b", "a{{+ n }}",
        "a {{- n }} b {{ n -}} c", "{% if yes %}\n\n{% endif %}\n\n.", "   {# a #}   {# b #}\n.", "x\n   {#+ a +#}\n.",
        "\u3000{% if yes %}\u00a0\n{%- endif %}"],
    "generation": ["{% for m in messages %}{{ m.role }}:{% generation %}{{ m.content }}{% endgeneration %}\n{% endfor %}",
        "{% generation %}{% endgeneration %}x",
        "{% set a = 1 %}{% generation %}{% set a = 2 %}{{ a }}{% endgeneration %}{{ a }}",
        "你{% generation %}好{% endgeneration %}",
        "{%- for m in messages -%} {%- generation -%} {{ m.role }} {% endgeneration -%} {%- endfor -%}"],
    "errors": ["{% if %}{% endif %}", "{{ }}", "{{ 1 + }}", "{% for x %}{% endfor %}", "{% endif %}", "{% if yes %}",
        "{{ 'a }}", "{{ (1 }}", "{{ 1) }}", "{% unknown %}", "{{ s | nope }}", "{{ s is nope }}", "{{ a b }}", "{# open",
        "{% raw %}x", "{% set 1 = 2 %}", "{% set true = 2 %}", "{% break %}", "{{ raise_exception('no: ' ~ n) }}",
        "{{ s() }}", "{{ 1() }}", "{{ n / 0 }}{{ n % 0 }}", "{{ missing.x }}", "{{ missing() }}", "{{ missing + 1 }}",
        "{{ [] + () }}", "{{ l[0:'a'] }}", "{{ {[]: 1} }}", "{% macro f(a, b=1, c) %}{% endmacro %}", "{{ f(a=1, 2) }}",
        "{{ s | replace('a') }}", "{{ s | upper(1) }}", "{{ s.split(',', 1, 2) }}", "{% extends 'x' %}",
        "{{ 1 is odd is even }}", "{{ x.1e5 }}", "{{ ! }}", "{% call 5 %}{% endcall %}", "{{ s.upper(x=1) }}",
        "{{ [1, 2](0) }}", "{% for loop in l %}{% endfor %}"],
    "functions": ["{{ strftime_now('%d %b %Y %H:%M %A %%') }}", "{{ strftime_now('') }}|",
        "{{ strftime_now is defined }}{{ raise_exception is defined }}", "{{ range(2, 3, 0) }}", "{{ range('a') }}",
        "{{ range() }}"],
}


class Writer:
    """Templates at random: mostly of a kind that renders."""

    def __init__(self, rng):
        self.rng, self.names, self.macros, self.loops = rng, ["s", "n", "l", "d", "m", "messages", "u", "e", "nil", "f", "ds", "csv"], [], 0

    def pick(self, *options):
        return self.rng.choice(options)

    def text(self):
        return "".join(self.pick("a", " ", "\n", "\n  ", "é", "x-", "{", "}", "\t", "%", "<|im_end|>") for _ in range(self.rng.randrange(5)))

    def constant(self):
        return self.pick("1", "0", "-2", "'a'", "'o'", "''", "'é b'", "none", "true", "false", "[1, 'x']", "{'a': 1}", "(1, 2)", "'role'")

    def expression(self, depth=0):
        if depth > 3 or self.rng.random() < 0.3:
            return self.pick(self.constant(), *[self.rng.choice(self.names) for _ in range(3)])
        inner = lambda: self.expression(depth + 1)
        kind = self.rng.randrange(14)
        if kind == 0:
            return f"{inner()} {self.pick('+', '~', '-', '*', '~', '~', '%')} {inner()}"
        if kind == 1:
            return f"({inner()} {self.pick('==', '!=', '<', 'in', 'not in', '>=')} {inner()})"
        if kind == 2:
            return f"({inner()} {self.pick('and', 'or')} {inner()})"
        if kind == 3:
            return f"(not {inner()})"
        if kind == 4:
            return f"({inner()} if {inner()}{self.pick(' else ' + inner(), '')})"
        if kind == 5:
            return f"({inner()} is {self.pick('', 'not ')}{self.pick('defined', 'none', 'string', 'mapping', 'iterable', 'number', 'sequence', 'true')})"
        if kind in (6, 7):
            return f"({inner()} | {self.filter()})"
        if kind == 8:
            return f"({inner()}){self.pick('.role', '[0]', '[-1]', '.a', '[1:]', '[::-1]', '[:2]', '.content', '[' + inner() + ']')}"
        if kind == 9:
            return f"({inner()}).{self.method()}"
        if kind == 10 and self.macros:
            name, count = self.rng.choice(self.macros)
            return f"{name}({', '.join(inner() for _ in range(self.rng.randrange(count + 1)))})"
        if kind == 11:
            return f"[{inner()}, {inner()}]"
        if kind == 12 and self.loops:
            return "loop." + self.pick("index", "index0", "first", "last", "previtem", "nextitem")
        return f"({self.constant()})"

    def filter(self):
        return self.pick("upper", "trim", "length", "string", "list", "first", "last", "join('-')", "tojson", "default('D')", "default('D', true)", "sort", "replace('a', 'b')",
                         "map('string') | list", "map(attribute='role') | join", "select | list", "selectattr('role', 'equalto', 'user') | list", "unique | list", "capitalize", "title", "indent(2)", "tojson(indent=2)",
                         "dictsort", "items | list", "lower", "reject('none') | list", "string | length")

    def method(self):
        return self.pick("strip()", "split()", "split('o')[0]", "upper()", "startswith('a')", "endswith('x')", "replace('o', '0')", "items() | list", "keys() | list", "get('a')", "get('role', 1)", "lstrip()", "title()")

    def tag(self, body):
        return "{%" + self.pick("", "", "-", "+") + f" {body} " + self.pick("", "", "-", "+") + "%}"

    def body(self, depth):
        return "".join(self.statement(depth) for _ in range(self.rng.randrange(1, 4)))

    def statement(self, depth):
        kind = self.rng.randrange(15)
        if depth > 3 or kind < 3:
            return self.text()
        if kind < 7:
            return "{{" + self.pick("", "-") + f" {self.expression()} " + self.pick("", "-") + "}}"
        if kind < 9:
            out = self.tag(f"if {self.expression()}") + self.body(depth + 1)
            if self.rng.random() < 0.3:
                out += self.tag(f"elif {self.expression()}") + self.body(depth + 1)
            if self.rng.random() < 0.5:
                out += self.tag("else") + self.body(depth + 1)
            return out + self.tag("endif")
        if kind < 11:
            return self.loop(depth)
        if kind == 11:
            name = self.pick("x", "y", "n", "s")
            out = self.tag(f"set {name} = {self.expression()}")
            self.names.append(name)
            return out
        if kind == 12:
            name = self.pick("x", "y")
            macros = list(self.macros)
            out = self.tag(f"set {name}") + self.body(depth + 1) + self.tag("endset")
            self.macros = macros
            self.names.append(name)
            return out
        if kind == 13:
            return self.macro(depth)
        return "{#" + self.pick("", "-") + self.text().replace("}", "") + " " + self.pick("", "-") + "#}"

    def loop(self, depth):
        name = self.pick("x", "y", "i")
        condition = f" if {self.expression()}" if self.rng.random() < 0.2 else ""
        iterated = self.pick("messages", "l", "m", "ds", "d", "range(3)", "s[:3]", "[1, 2]", f"({self.expression()})")
        out = self.tag(f"for {name} in {iterated}{condition}")
        names, macros, loops = list(self.names), list(self.macros), self.loops
        self.names.append(name)
        self.loops += 1
        out += self.body(depth + 1)
        if self.rng.random() < 0.1:
            out += self.tag("if loop.index > 1") + self.tag(self.pick("break", "continue")) + self.tag("endif")
        self.names, self.macros, self.loops = names, macros, loops
        if self.rng.random() < 0.2:
            out += self.tag("else") + self.body(depth + 1)
            self.macros = macros
        return out + self.tag("endfor")

    def macro(self, depth):
        name, count = self.pick("f", "g"), self.rng.randrange(3)
        loops, self.loops = self.loops, 0
        names, macros = list(self.names), list(self.macros)
        self.names += ["a", "b"][:count]
        out = self.tag(f"macro {name}m({', '.join(('a', 'b=1')[:count])})") + self.body(depth + 2) + self.tag("endmacro")
        self.loops, self.names, self.macros = loops, names, macros
        self.macros.append((name + "m", count))
        return out

    def template(self):
        return "".join(self.statement(0) for _ in range(self.rng.randrange(2, 7)))
