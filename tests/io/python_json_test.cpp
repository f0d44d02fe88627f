// JSON whose real numbers stay real numbers to Python.
#include "io/python_json.h"

#include <gtest/gtest.h>

#include "io/json.h"

namespace plimsoll::io {
namespace {

TEST(PythonJson, KeepsRealNumbersReal) {
  const char* const text =
      R"({"scale": 1.0, "eps": 1e-06, "zero": -0.0, "layers": 12, "list": [0.0, 2, {"a": 1e+20}], "none": null, "yes": true, "name": "a\"b"})";
  const auto tree = parse_json(text);
  ASSERT_TRUE(tree);
  EXPECT_EQ(to_python_json(*tree), text);
  EXPECT_EQ(to_python_json(Tree::of(3.0)), "3.0");
  EXPECT_EQ(to_python_json(Tree::of(int64_t{3})), "3");
}

}  // namespace
}  // namespace plimsoll::io
