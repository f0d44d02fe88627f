// Templates that are made to overflow the stack or to work without being charged for it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "templates/chat_template.h"

namespace plimsoll::templates {
namespace {

using testing::HasSubstr;

/// The text, or "error: …".
std::string rendered_within(const std::string& text, int64_t max_steps = ChatLimits().max_steps) {
  const auto chat = ChatTemplate::parse(text, "t", {}, {.limits = {.max_steps = max_steps}});
  if (!chat) return "error: " + chat.error().message();
  ChatText out;
  const Status status =
      (*chat)->render(R"({"messages": [{"role": "user"}]})", false, out, AssistantSpans::kSkip);
  return status ? out.text : "error: " + status.error().message();
}

std::string times(int count, const std::string& text) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

/// A loop that sets ns.x, from `start`, to `next` so often.
std::string grown(const std::string& start, const std::string& next, int count) {
  return "{% set ns = namespace(x=" + start + ") %}{% for i in range(" + std::to_string(count) +
         ") %}{% set ns.x = " + next + " %}{% endfor %}";
}

TEST(ChatLimits, CountTagsAndExpressionsThatMacrosNest) {
  struct Tag {
    std::string begin, end;
  };
  for (const Tag& tag : {Tag{"{% if true %}", "{% endif %}"}, Tag{"{% for i in [1] %}", "{% endfor %}"},
                         Tag{"{% set y %}", "{% endset %}"}, Tag{"{% filter upper %}", "{% endfilter %}"},
                         Tag{"{% if false %}{% else %}", "{% endif %}"}})
    EXPECT_THAT(rendered_within("{% macro m(a) %}" + times(57, tag.begin) + "{{ m(a) }}" +
                                times(57, tag.end) + "{% endmacro %}{{ m(1) }}"),
                HasSubstr("nested too deep"))
        << tag.begin;
  EXPECT_THAT(rendered_within("{% macro m() %}{% for i in [1] if m() %}{% endfor %}{% endmacro %}{{ m() }}"),
              HasSubstr("nested too deep"));
  EXPECT_THAT(
      rendered_within(
          "{% macro m() %}{% if caller %}{% endif %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}"),
      HasSubstr("nested too deep"));
  EXPECT_EQ(
      rendered_within("{% macro m(n) %}{% if n %}{% for i in [1] %}{{ m(n - 1) }}{% endfor %}{% else %}end"
                      "{% endif %}{% endmacro %}{{ m(100) }}{{ m(100) }}"),
      "endend");
}

TEST(ChatLimits, FollowOtherValuesNoFurther) {
  const std::string wide = grown("[]", "[ns.x, ns.x]", 60) + "{% set a = ns.x %}" +
                           grown("[]", "[ns.x, ns.x]", 60),
                    deep = grown("[]", "[ns.x]", 99999) + "{% set a = ns.x %}" + grown("[]", "[ns.x]", 99999);
  for (const char* use : {"{{ ns.x }}", "{{ ns.x ~ '' }}", "{{ ns.x | tojson }}", "{{ ns.x == a }}",
                          "{{ a in [ns.x] }}", "{{ {'k': ns.x} == {'k': a} }}"}) {
    EXPECT_THAT(rendered_within(wide + use, 1'000'000), HasSubstr("error: ")) << use;
    EXPECT_THAT(rendered_within(deep + use), HasSubstr("error: ")) << use;
  }
}

TEST(ChatLimits, CountLazyFiltersInEachOther) {
  for (const char* next : {"ns.x | map('upper')", "ns.x | select", "ns.x | unique"})
    EXPECT_THAT(rendered_within(grown("['a']", next, 99999) + "{{ ns.x | list }}"),
                HasSubstr("chained too deep"));
  EXPECT_EQ(
      rendered_within(grown("['a']", "ns.x | map('upper')", 150) + "{{ ns.x | list }}{{ ns.x | list }}"),
      "['A'][]");
}

TEST(ChatLimits, ChargeForTheTextGoneThrough) {
  for (const char* call : {"strip()", "lstrip()", "rstrip()", "strip('x ')", "rstrip(' x')", "startswith(b)",
                           "endswith(b)", "split('x')", "replace('x', '')", "upper()"})
    EXPECT_THAT(
        rendered_within("{% set a = ' ' * 100000 %}{% set b = ' ' * 90000 %}{% for i in range(2000) %}"
                        "{% set y = a." +
                            std::string(call) + " %}{% endfor %}",
                        1'000'000),
        HasSubstr("more steps"))
        << call;
  for (const char* value : {"a | trim", "b in a", "a == c", "a < c", "a | lower", "a | title", "{a: 1}[c]"})
    EXPECT_THAT(rendered_within("{% set a = ' ' * 100000 %}{% set b = 'x' %}{% set c = ' ' * 99999 ~ 'x' %}"
                                "{% for i in range(2000) %}{% set y = " +
                                    std::string(value) + " %}{% endfor %}",
                                1'000'000),
                HasSubstr("more steps"))
        << value;
}

TEST(ChatLimits, SearchInTimeLinearInTheText) {
  const std::string texts =
      "{% set a = 'a' * 400000 %}{% set b = 'a' * 200000 ~ 'b' %}{% set c = 'b' ~ 'a' * 200000 %}";
  EXPECT_EQ(rendered_within(
                texts + "{{ b in a }},{{ c in a }},{{ a.replace(b, '') == a }},{{ a.split(b) | length }}"),
            "False,False,True,1");
}

TEST(ChatLimits, SearchFindsWhatPythonFinds) {
  const std::string texts =
      "{% set w = '0123456789abcdefghij' %}{% set t = 'x' ~ w ~ w ~ 'yy' ~ w ~ 'z' * 200 %}";
  EXPECT_EQ(
      rendered_within(
          texts + "{{ t.split(w) | length }},{{ t.split(w, 1)[1][:3] }},{{ t.replace(w, '-')[:6] }},"
                  "{{ '' in '' }},{{ ''.split('a') }},{{ 'aXbX'.split('X') }},{{ 'abc'.replace('', '-') }},"
                  "{{ 'abab'.replace('ab', 'c', 1) }},{{ ' a  b '.split() }},{{ ' a  b c'.split(none, 1) }}"),
      "4,012,x--yy-,True,[''],['a', 'b', ''],-a-b-c-,cab,['a', 'b'],['a', 'b c']");
}

}  // namespace
}  // namespace plimsoll::templates
