// Expressions: texts read and written, constants folded, values, derivatives against central differences.
#include "ops/expression.h"

#include <gtest/gtest.h>

#include <cmath>

namespace plimsoll::ops {
namespace {

std::string again(std::string_view text) {
  const auto f = Expression::parse(text);
  return f ? f->text() : f.error().what;
}

TEST(Expression, TextsAreReadAndWritten) {
  for (const char* text : {"x0", "add(x0,x1)", "t0=exp(x0);div(t0,add(t0,1))", "where(gt(x0,0),x1,-0.5)",
                           "clamp(x11,-inf,1e-05)"})
    EXPECT_EQ(again(text), text);
  EXPECT_EQ(again(" add( x0 , mul(x1,x1) ) "), "add(x0,mul(x1,x1))");
  EXPECT_EQ(again("add(exp(x0),exp(x0))"), "t0=exp(x0);add(t0,t0)");
  EXPECT_EQ(again("t0=mul(x0,x0);neg(x0)"), "neg(x0)") << "nothing that the result does not need";
}

/// Nested, such a chain and its derivative would be deeper than a text may be.
TEST(Expression, TextsOfLongChainsAreReadAgain) {
  std::string chain = "t0=sigmoid(x0);";
  for (int i = 1; i < 100; ++i)
    chain += "t" + std::to_string(i) + "=" + (i % 2 == 0 ? "sigmoid" : "tanh") + "(t" +
             std::to_string(i - 1) + ");";
  const Expression f = *Expression::parse(chain + "t99");
  for (const Expression& e : {f, *derivative(f, 0, 1)}) {
    const auto read = Expression::parse(e.text());
    ASSERT_TRUE(read.ok()) << read.error().what;
    EXPECT_EQ(read->nodes().size(), e.nodes().size());
    EXPECT_EQ(read->evaluate(std::vector<double>{0.3, 1e40}), e.evaluate(std::vector<double>{0.3, 1e40}));
  }
}

TEST(Expression, ConstantsAreFolded) {
  EXPECT_EQ(again("mul(x0,add(1,2))"), "mul(x0,3)");
  EXPECT_EQ(again("mul(div(x0,1),1)"), "x0");
  EXPECT_EQ(again("neg(neg(x0))"), "x0");
  EXPECT_EQ(again("pow(x0,2)"), "mul(x0,x0)");
  EXPECT_EQ(again("pow(x0,0.5)"), "sqrt(x0)");
  EXPECT_EQ(again("pow(x0,-1)"), "div(1,x0)");
  EXPECT_EQ(again("pow(x0,1.5)"), "pow(x0,1.5)");
  EXPECT_EQ(again("pow(x0,0)"), "1");
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_EQ(again(""), "\"\" ends too early (at character 1)");
  EXPECT_EQ(again("add(x0"), "\"add(x0\" wants 2 operands of add (at character 7)");
  EXPECT_EQ(again("add(x0,x1"), "\"add(x0,x1\" wants ) behind 2 operands of add (at character 10)");
  EXPECT_EQ(again("sine(x0)"), "\"sine(x0)\" has a function sine that is none (at character 6)");
  EXPECT_EQ(again("x12"), "\"x12\" has an operand x12 that is none (at character 4)");
  EXPECT_EQ(again("x0 x1"), "\"x0 x1\" goes on behind its result (at character 4)");
  EXPECT_EQ(again("mul(x0,1.2.3)"), "\"mul(x0,1.2.3)\" has a number that is none (at character 8)");
  EXPECT_EQ(again("t0=x0 t0"), "\"t0=x0 t0\" wants ; behind a named part (at character 7)");
  EXPECT_NE(again(std::string(2000, '(')).find("wants an operand"), std::string::npos);
  std::string deep = "x0";
  for (int i = 0; i < 100; ++i) deep = "exp(" + deep + ")";
  EXPECT_NE(again(deep).find("is nested too deeply"), std::string::npos);
  std::string large = "t0=exp(x0);";
  for (int i = 1; i < 600; ++i) large += "t" + std::to_string(i) + "=exp(t" + std::to_string(i - 1) + ");";
  EXPECT_NE(again(large + "t599").find("more than 512 parts"), std::string::npos);
}

double at(std::string_view text, std::vector<double> inputs) {
  return Expression::parse(text)->evaluate(inputs);
}

TEST(Expression, ValuesAreThoseOfTheFunctions) {
  EXPECT_EQ(at("sub(x0,x1)", {3, 5}), -2);
  EXPECT_EQ(at("where(lt(x0,x1),7,8)", {3, 5}), 7);
  EXPECT_EQ(at("clamp(x0,0,1)", {3}), 1);
  EXPECT_EQ(at("max(x0,x1)", {3, 5}), 5);
  EXPECT_TRUE(std::isnan(at("max(x0,x1)", {NAN, 5})) && std::isnan(at("min(x0,x1)", {5, NAN})));
  EXPECT_DOUBLE_EQ(at("softplus(x0)", {-40}), std::exp(-40.0));
  EXPECT_EQ(at("softplus(x0)", {800}), 800);
  EXPECT_DOUBLE_EQ(at("sigmoid(x0)", {-40}), std::exp(-40.0));
  EXPECT_EQ(function_arity("clamp"), 3);
  EXPECT_EQ(function_arity("x"), 0);
  EXPECT_EQ(function_arity("sine"), 0);
}

/// d f / d x at that place, and by central differences.
void expect_slope(std::string_view text, std::vector<double> x, size_t input) {
  const Expression f = *Expression::parse(text);
  const auto d = derivative(f, static_cast<int>(input), static_cast<int>(x.size()));
  std::vector<double> with_cotangent = x;
  with_cotangent.push_back(1.5);
  const double found = d ? d->evaluate(with_cotangent) : 0;
  constexpr double kStep = 1e-6;
  const double centre = x[input];
  x[input] = centre + kStep;
  const double above = f.evaluate(x);
  x[input] = centre - kStep;
  const double below = f.evaluate(x);
  EXPECT_NEAR(found, 1.5 * (above - below) / (2 * kStep), 1e-7 * (1 + std::abs(found)))
      << text << " by x" << input << ": " << (d ? d->text() : "none");
}

TEST(Expression, DerivativesMatchDifferences) {
  for (const char* f : {"neg", "abs", "sign", "exp", "tanh", "sigmoid", "softplus", "erf", "relu"})
    for (const double x : {-1.3, 0.4, 2.1}) expect_slope(std::string(f) + "(x0)", {x}, 0);
  for (const char* f : {"sqrt", "rsqrt", "log"})
    for (const double x : {0.3, 2.1}) expect_slope(std::string(f) + "(x0)", {x}, 0);
  for (const char* f : {"add", "sub", "mul", "div", "pow", "max", "min", "lt"})
    for (const size_t i : {0U, 1U}) {
      expect_slope(std::string(f) + "(x0,x1)", {0.7, 1.9}, i);
      expect_slope(std::string(f) + "(x0,x1)", {2.3, 1.1}, i);
    }
  for (const size_t i : {0U, 1U, 2U})
    for (const double x : {-1.0, 0.5, 3.0}) {
      expect_slope("clamp(x0,x1,x2)", {x, 0.1, 1.2}, i);
      expect_slope("where(gt(x0,0.2),mul(x1,x2),exp(x2))", {x, 0.1, 1.2}, i);
    }
  expect_slope("t0=mul(x0,x0);t1=exp(neg(t0));add(mul(t1,x0),div(t0,add(1,t1)))", {0.8}, 0);
  for (const double exponent : {1.0, 2.0, 3.0, -2.0, 1.5, -0.5})
    expect_slope("pow(x0," + std::to_string(exponent) + ")", {1.7}, 0);
}

/// Where several slopes could be meant, PyTorch's.
TEST(Expression, SlopesAtCornersArePyTorchs) {
  const auto slope = [](std::string_view text, std::vector<double> x, int input) {
    const auto d = derivative(*Expression::parse(text), input, static_cast<int>(x.size()));
    x.push_back(1);
    return d->evaluate(x);
  };
  EXPECT_EQ(slope("relu(x0)", {0}, 0), 0);
  EXPECT_EQ(slope("abs(x0)", {0}, 0), 0);
  EXPECT_EQ(slope("max(x0,x1)", {2, 2}, 0), 0.5);
  EXPECT_EQ(slope("min(x0,x1)", {2, 2}, 1), 0.5);
  EXPECT_EQ(slope("clamp(x0,0,1)", {1}, 0), 0);
  EXPECT_EQ(slope("clamp(x0,x1,1)", {0, 0}, 1), 1);
  EXPECT_EQ(slope("pow(x0,x1)", {0, 2}, 1), 0) << "not 0 log 0";
  EXPECT_FALSE(derivative(*Expression::parse("gt(x0,x1)"), 0, 2).has_value());
  EXPECT_FALSE(derivative(*Expression::parse("exp(x0)"), 1, 2).has_value());
}

TEST(Expression, ADerivativeWithoutRoomIsRefused) {
  std::string text = "t0=pow(x0,x1);";
  for (int i = 1; i < 120; ++i) text += "t" + std::to_string(i) + "=pow(x1,t" + std::to_string(i - 1) + ");";
  const Expression f = *Expression::parse(text + "t119");
  const auto d = derivative(f, 0, 2);
  ASSERT_TRUE(d.has_value());
  EXPECT_FALSE(d->is_complete());
  EXPECT_FALSE(Expression::parse(d->text()));
}

}  // namespace
}  // namespace plimsoll::ops
