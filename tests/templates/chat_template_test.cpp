// Reading templates and records, errors with their places, and the limits.
#include "templates/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/temporary_folder.h"

namespace plimsoll::templates {
namespace {

using testing::HasSubstr;

const std::string kHello = R"({"messages": [{"role": "user", "content": "hello"}]})";

/// The text, or "error: …".
std::string rendered(std::string_view text, const std::string& record = kHello,
                     const ChatOptions& options = {}) {
  const auto chat = ChatTemplate::parse(text, "chat.jinja", {{"eos_token", "</s>"}}, options);
  if (!chat) return "error: " + chat.error().message();
  ChatText out;
  const Status status = (*chat)->render(record, false, out, AssistantSpans::kSkip);
  return status ? out.text : "error: " + status.error().message();
}

std::string with_variables(const std::string& variables) {
  return R"({"messages": [{"role": "user", "content": "x"}], "chat_template_kwargs": )" + variables + "}";
}

TEST(ChatTemplate, NamesFileLineAndWhatItDoesNotKnow) {
  EXPECT_EQ(rendered("a\n{{ messages | shout }}"), "error: unknown filter 'shout': chat.jinja: line 2");
  EXPECT_EQ(rendered("a\n\n{{ 1 is loud }}"), "error: unknown test 'loud': chat.jinja: line 3");
  EXPECT_EQ(rendered("{% shout 'x' %}"), "error: unknown tag 'shout': chat.jinja: line 1");
  EXPECT_EQ(rendered("\n{{ shout() }}"), "error: unknown function 'shout': chat.jinja: line 2");
  EXPECT_EQ(rendered("{% if helper is defined %}{{ helper() }}{% endif %}ok"), "ok");
}

TEST(ChatTemplate, WhatIsUndefinedIsInNoMapping) {
  EXPECT_EQ(rendered("{{ nothing in {'a': 1} }} {{ nothing not in messages[0] }}"), "False True");
}

/// What Jinja2 has and templates of public models do not use.
TEST(ChatTemplate, RefusesByNameWhatNoPublicTemplateUses) {
  const std::string why = " is not supported: templates of public models do without it: chat.jinja: line ";
  EXPECT_EQ(rendered("\n{{ 'a' | truncate(3) }}"), "error: the filter 'truncate'" + why + "2");
  EXPECT_EQ(rendered("{{ 1 is odd }}"), "error: the test 'odd'" + why + "1");
  EXPECT_EQ(rendered("{% with a = 1 %}"), "error: the tag 'with'" + why + "1");
  EXPECT_EQ(rendered("{% raw %}{{ ( {% endraw %}"), "error: the tag 'raw'" + why + "1");
  EXPECT_EQ(rendered("{{ lipsum() }}"), "error: the function 'lipsum'" + why + "1");
  EXPECT_EQ(rendered("{{ 'a'.find('b') }}"), "error: 'find' of a str" + why + "1");
  EXPECT_EQ(rendered("{{ messages.index(1) }}"), "error: 'index' of a list" + why + "1");
  EXPECT_EQ(rendered("{{ messages[0].copy() }}"), "error: 'copy' of a dict" + why + "1");
  EXPECT_EQ(rendered("{% for x in [1] %}{{ loop.revindex }}{% endfor %}"),
            "error: 'loop.revindex'" + why + "1");
  EXPECT_EQ(rendered("{% for x in [] recursive %}{% endfor %}"), "error: a recursive loop" + why + "1");
  EXPECT_EQ(rendered("{{ 4 / 2 }}"), "error: '/'" + why + "1");
  EXPECT_EQ(rendered("{{ 4 // 2 }}"), "error: '//'" + why + "1");
  EXPECT_EQ(rendered("{{ 4 ** 2 }}"), "error: '**'" + why + "1");
  EXPECT_EQ(rendered("{{ +1 }}"), "error: the sign '+'" + why + "1");
  EXPECT_EQ(rendered("{{ 1 < 2 < 3 }}"), "error: a comparison of a comparison (a < b < c)" + why + "1");
  EXPECT_EQ(rendered("{{ messages.0 }}"), "error: an item as '.0'" + why + "1");
  EXPECT_EQ(rendered("{{ {}[1, 2] }}"), "error: an item of several indices" + why + "1");
  EXPECT_EQ(rendered("{{ 1 is eq(1) }}"), "error: a test with an argument" + why + "1");
  EXPECT_EQ(rendered("{% set a, b = 1, 2 %}"), "error: {% set %} of several names" + why + "1");
  EXPECT_EQ(rendered("{% macro f() %}{{ varargs }}{% endmacro %}"), "error: 'varargs'" + why + "1");
  for (const char* text : {"{{ 1.5 }}",
                           "{{ 0x10 }}",
                           "{{ 1_000 }}",
                           "{{ f(*messages) }}",
                           "{{ f(**messages[0]) }}",
                           "{% call(a) f() %}{% endcall %}",
                           "{% set x | upper %}{% endset %}",
                           "{{ '%s' % 1 }}",
                           "{{ messages | tojson(sort_keys=true) }}",
                           "{{ messages | sort(true) }}",
                           "{{ {'a': 1} | dictsort(true) }}",
                           "{{ messages | map(attribute='a', default=1) | list }}",
                           "{{ dict([('a', 1)]) }}",
                           "{{ {(1, 2): 3} }}",
                           "{% for a, (b, c) in [] %}{% endfor %}",
                           "{{ 'Straße' | upper }}",
                           "{{ 'ΑΣ'.lower() }}",
                           "{{ '1.5' | int }}",
                           "{{ range(3) }}",
                           "{{ namespace(a=1) }}"})
    EXPECT_THAT(rendered(text), HasSubstr("error: ")) << text;
}

TEST(ChatTemplate, ChangesTheCaseOfLettersBeyondAscii) {
  EXPECT_EQ(rendered("{{ 'größe é 用户' | capitalize }}|{{ 'ÉÀ ÇA'.lower() }}|{{ 'привет мир' | title }}|"
                     "{{ 'éà 用户'.upper() }}|{{ 'use it'.title() }}"),
            "Größe é 用户|éà ça|Привет Мир|ÉÀ 用户|Use It");
}

TEST(ChatTemplate, SaysWhereSyntaxIsBroken) {
  EXPECT_EQ(rendered("a\n{% if x %}b"),
            "error: the template ends before {% elif %} or {% else %} or {% endif %}: chat.jinja: line 2");
  EXPECT_EQ(rendered("{{ (1 }}"), "error: unexpected '}', expected ')': chat.jinja: line 1");
  EXPECT_EQ(rendered("{{ 'a }}"), "error: a text that is not closed by its quote: chat.jinja: line 1");
  EXPECT_EQ(rendered("{{ 1 2 }}"), "error: expected '}}', found '2': chat.jinja: line 1");
  EXPECT_EQ(rendered("{{ $ }}"), "error: unexpected character '$': chat.jinja: line 1");
  EXPECT_EQ(rendered("{% break %}"), "error: {% break %} outside of a loop: chat.jinja: line 1");
  EXPECT_THAT(rendered("{% set x = \xFF %}"), HasSubstr("no UTF-8"));
}

TEST(ChatTemplate, SaysWhereRenderingFails) {
  EXPECT_EQ(rendered("{{ messages[0].content }}\n\n{{ messages[9].role }}"),
            "error: 'list' object has no '9': chat.jinja: line 3");
  EXPECT_EQ(rendered("\n{{ raise_exception('no ' ~ messages[0].role) }}"),
            "error: the template refuses the conversation: no user: chat.jinja: line 2");
  EXPECT_EQ(rendered("{{ 1 + 'a' }}"), "error: '+' is not possible between int and str: chat.jinja: line 1");
  EXPECT_EQ(rendered("{{ nothing.at.all }}"), "error: 'nothing' is undefined: chat.jinja: line 1");
  EXPECT_THAT(rendered("{{ messages.append(1) }}"), HasSubstr("is not allowed in a template"));
  EXPECT_THAT(rendered("{{ 9223372036854775807 + 1 }}"), HasSubstr("beyond 64 bits"));
}

TEST(ChatTemplate, NamesWhatIsWrongWithARecord) {
  EXPECT_THAT(rendered("", "[]"), HasSubstr("no JSON object"));
  EXPECT_THAT(rendered("", "{\"messages\": "), HasSubstr("broken JSON"));
  EXPECT_THAT(rendered("", "{}"), HasSubstr("no 'messages'"));
  EXPECT_THAT(rendered("", R"({"messages": []})"), HasSubstr("not a list with a message in it"));
  EXPECT_THAT(rendered("", R"({"messages": [{}, "hi"]})"), HasSubstr("messages[1]"));
  EXPECT_THAT(rendered("", R"({"messages": [{}], "tools": {}})"), HasSubstr("'tools'"));
  EXPECT_THAT(rendered("", R"({"messages": [{}], "chat_template_kwargs": {"messages": 1}})"),
              HasSubstr("sets 'messages'"));
  EXPECT_THAT(rendered("", R"({"messages": [{"id": 18446744073709551615}]})"), HasSubstr("beyond 64 bits"));
}

TEST(ChatTemplate, SeesARecordAsApplyChatTemplateDoes) {
  EXPECT_EQ(
      rendered("{{ messages[0] }}", R"({"messages": [{"role": "user", "content": null, "name": "n"}]})"),
      "{'role': 'user', 'name': 'n'}");
  EXPECT_EQ(rendered("{{ messages[0] }}", R"({"messages": [{"role": "a", "reasoning": "r"}]})"),
            "{'thinking': 'r', 'role': 'a', 'reasoning': 'r', 'reasoning_content': 'r'}");
  EXPECT_EQ(rendered("{{ tools }}{{ documents }}{{ add_generation_prompt }}{{ eos_token }}{{ bos_token }}|"),
            "NoneNoneFalse</s>|");
  EXPECT_EQ(
      rendered("{{ deep }}{{ eos_token }}", with_variables(R"({"deep": [1.0, true], "eos_token": "E"})")),
      "[1.0, True]E");
  EXPECT_EQ(rendered("{{ id is defined }}", R"({"messages": [{}], "id": 5})"), "False");
}

TEST(ChatTemplate, TakesTheClockThatItIsGiven) {
  const ChatOptions options{.now = 1735689600};
  EXPECT_EQ(rendered("{{ strftime_now('%d %b %Y') }}", kHello, options), "01 Jan 2025");
  EXPECT_EQ(rendered("{{ strftime_now('%Y') | length }}"), "4");
}

TEST(ChatTemplate, KeepsToTheLimits) {
  const std::string forever =
      "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
  EXPECT_THAT(rendered(forever, kHello, {.limits = {.max_steps = 100'000}}), HasSubstr("more steps"));
  const std::string doubles =
      "{% set ns = namespace(x='0123456789') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor "
      "%}";
  EXPECT_THAT(rendered(doubles, kHello, {.limits = {.max_memory_bytes = 1 << 20}}), HasSubstr("more memory"));
  EXPECT_THAT(rendered("{{ 'a' * 99999999999 }}"), HasSubstr("than allowed"));
  EXPECT_THAT(rendered("{% for i in range(1000) %}{{ 'abcdefgh' * 100 }}{% endfor %}", kHello,
                       {.limits = {.max_output_bytes = 5000}}),
              HasSubstr("larger than allowed"));
  const std::string nest =
      "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}";
  EXPECT_THAT(rendered(nest + "{{ ns.x }}", kHello, {.limits = {.max_steps = 100'000}}),
              HasSubstr("more steps"));
  EXPECT_THAT(rendered(nest + "{% set other = ns.x %}" + nest + "{{ ns.x == other }}", kHello,
                       {.limits = {.max_steps = 100'000}}),
              HasSubstr("more steps"));
  EXPECT_THAT(rendered("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), HasSubstr("nested too deep"));
  EXPECT_THAT(rendered("{{ range(100001) }}"), HasSubstr("range"));
  EXPECT_THAT(rendered("{{ " + std::string(5000, '(') + "1" + std::string(5000, ')') + " }}"),
              HasSubstr("nested too deep"));
  std::string chain = "{{ 1";
  for (int i = 0; i < 5000; ++i) chain += " + 1";
  EXPECT_THAT(rendered(chain + " }}"), HasSubstr("nested too deep"));
  std::string tags;
  for (int i = 0; i < 500; ++i) tags += "{% if 1 %}";
  EXPECT_THAT(rendered(tags), HasSubstr("nested too deep"));
  std::string deep =
      "{% set ns = namespace(x=[]) %}{% for i in range(1000) %}{% set ns.x = [ns.x] %}{% endfor %}";
  EXPECT_THAT(rendered(deep + "{{ ns.x }}"), HasSubstr("too deep"));
  EXPECT_THAT(rendered(deep + "{{ ns.x | tojson }}"), HasSubstr("too deep"));
}

TEST(ChatTemplate, LosesNoGenerationThatItCannotPlace) {
  const auto chat = ChatTemplate::parse(
      "{% macro say(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}"
      "{% for m in messages %}[{{ m.role }}]{{ say(m) if m.role == 'assistant' else m.content }}{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}",
      "t");
  ChatText out;
  ASSERT_TRUE((*chat)->render(
      R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "bc"}]})", false,
      out));
  EXPECT_EQ(out.text, "[user]a[assistant]bc");
  EXPECT_EQ(out.assistant, (std::vector<TextSpan>{{18, 20}}));
}

class ModelFolder : public testing::Test {
 protected:
  std::string open_and_render(const std::string& record = kHello, const ChatOptions& options = {}) {
    const auto chat = ChatTemplate::open(folder_.path(), options);
    if (!chat) return "error: " + chat.error().message();
    ChatText out;
    const Status status = (*chat)->render(record, false, out);
    return status ? out.text : "error: " + status.error().message();
  }
  io::TemporaryFolder folder_;
};

const std::string kTools =
    R"({"messages": [{"role": "user", "content": "hello"}], "tools": [{"type": "function"}]})";

TEST_F(ModelFolder, SaysWhatToDoWithoutATemplate) {
  EXPECT_THAT(open_and_render(), HasSubstr("no chat template"));
  folder_.write("tokenizer_config.json", "{\"eos_token\": \"x\"}");
  EXPECT_THAT(open_and_render(), HasSubstr("no chat template"));
  EXPECT_THAT(ChatTemplate::open(folder_.path()).error().hint, HasSubstr("name a template's file"));
  folder_.write("tokenizer_config.json", "{");
  EXPECT_THAT(open_and_render(), HasSubstr("tokenizer_config.json"));
  folder_.write("tokenizer_config.json", "{\"chat_template\": 5}");
  EXPECT_THAT(open_and_render(), HasSubstr("not a text"));
  folder_.write("tokenizer_config.json", "{\"chat_template\": [{\"name\": \"rag\", \"template\": \"\"}]}");
  EXPECT_THAT(open_and_render(), HasSubstr("'default'"));
}

TEST_F(ModelFolder, ReadsTheConfigAndItsTokens) {
  folder_.write("special_tokens_map.json", R"({"bos_token": "no", "pad_token": "<pad>"})");
  folder_.write(
      "tokenizer_config.json",
      R"({"bos_token": {"content": "<b>"}, "eos_token": "<e>", "extra_special_tokens": {"image_token": "<i>"},
                    "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{{ pad_token }}{{ image_token }}"})");
  EXPECT_EQ(open_and_render(), "<b>hello<e><pad><i>");
}

TEST_F(ModelFolder, PrefersTheToolTemplateForTools) {
  folder_.write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "plain"},
      {"name": "tool_use", "template": "{{ tools | length }} tool"}]})");
  EXPECT_EQ(open_and_render(), "plain");
  EXPECT_EQ(open_and_render(kTools), "1 tool");
  folder_.write("chat_template.jinja", "file");
  EXPECT_EQ(open_and_render(), "file");
  EXPECT_EQ(open_and_render(kTools), "file");
  const std::string other = folder_.write("other.jinja", "other {{ eos_token }}");
  EXPECT_EQ(open_and_render(kTools, {.template_file = other}), "other ");
  EXPECT_THAT(open_and_render(kTools, {.template_file = folder_.path("none.jinja")}),
              HasSubstr("none.jinja"));
}

TEST_F(ModelFolder, NamesTheFileOfABrokenTemplate) {
  folder_.write("chat_template.jinja", "a\n{% if %}");
  EXPECT_THAT(open_and_render(), HasSubstr("chat_template.jinja: line 2"));
}

}  // namespace
}  // namespace plimsoll::templates
