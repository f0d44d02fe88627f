"""Conversations for the chat templates' tests: short, with what templates look at (roles, tools, parts, reasoning)."""

WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather \"now\" in a city, <b>café</b>",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Its name"},
        "unit": {"type": "string", "enum": ["C", "F"]},
        "days": {"type": "array", "items": {"type": "integer"}}}, "required": ["city"]}}}
CLOCK = {"type": "function", "function": {
    "name": "clock", "description": "The time", "parameters": {"type": "object", "properties": {}, "required": []},
    "return": {"type": "string"}}}


def user(text):
    return {"role": "user", "content": text}


def assistant(text, **more):
    return {"role": "assistant", "content": text, **more}


def call(name, arguments, identity="abcdef123"):
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


CALLS = [user("Weather in Bern?"),
         {"role": "assistant", "content": None, "tool_calls": [call("weather", {"city": "Bern", "days": [1, 2.5], "é": None})]},
         {"role": "tool", "content": "{\"t\": 3}", "tool_call_id": "abcdef123", "name": "weather"},
         assistant("It is 3 °C.")]

CONVERSATIONS = {
    "one": {"messages": [user("Hi")]},
    "pair": {"messages": [user("Hi there"), assistant("Hello!")]},
    "system": {"messages": [{"role": "system", "content": " Be brief. \n"}, user("What is 2+2?"), assistant("4")]},
    "turns": {"messages": [user("a"), assistant("b"), user("c"), assistant("d"), user("e")]},
    "long": {"messages": [{"role": "system", "content": "S"}, user("1"), assistant("one"), user("2"), assistant("two"),
                          user("3"), assistant("three")]},
    "blanks": {"messages": [user("  x\n\n"), assistant("\n  y z \t"), user("\u3000w\u00a0"), assistant("v\n")]},
    "unicode": {"messages": [user("naïve 你好 👩‍🚀 \u2028"), assistant("žluťoučký <|im_end|> {{ x }} {% y %} \\n \"q\" 'p'")]},
    "tools": {"messages": CALLS, "tools": [WEATHER, CLOCK]},
    "two calls": {"messages": [user("Both?"), assistant("Sure", tool_calls=[call("weather", {"city": "Oslo"}),
                                                                             call("clock", {}, "987654321")]),
                               {"role": "tool", "content": "cold", "tool_call_id": "abcdef123"},
                               {"role": "tool", "content": "12:00", "tool_call_id": "987654321"},
                               assistant("Cold at noon."), user("Thanks"), assistant("Welcome")], "tools": [WEATHER]},
    "reasoning": {"messages": [user("2*3?"), assistant("6", reasoning_content="two threes"), user("+1?"),
                               assistant("7", reasoning="six and one")]},
    "thinking": {"messages": [user("2*3?"), assistant("<think>\ntwo threes\n</think>\n\n6"), user("+1?"),
                              assistant("<think>\nsix and one\n</think>\n\n7")]},
    "no thinking": {"messages": [user("2*3?"), assistant("6"), user("+1?")], "chat_template_kwargs": {"enable_thinking": False}},
    "parts": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": " What is it? "}]},
                           {"role": "assistant", "content": [{"type": "text", "text": "A "}, {"type": "text", "text": "cat."}]}]},
    "assistant first": {"messages": [assistant("I begin"), user("ok"), assistant("good")]},
    "odd order": {"messages": [user("a"), user("b"), assistant("c"), assistant("d")]},
    "variables": {"messages": [user("When?"), assistant("Now")], "tools": [CLOCK],
                  "chat_template_kwargs": {"date_string": "1 Jan 2000", "tools_in_user_message": False,
                                           "builtin_tools": ["search", "code_interpreter"]}},
    "roles": {"messages": [user("a"), {"role": "critic", "content": "no"}, assistant("b"), {"role": "skip", "content": "s"},
                           {"role": "stop", "content": "t"}, assistant("c")]},
    "empty texts": {"messages": [user(""), assistant(""), user("x"), assistant(" ")]},
}

TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
