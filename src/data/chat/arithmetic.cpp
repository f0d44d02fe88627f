// The operators of numbers, texts and lists, as Python has them; integers have 64 bits, and what goes beyond
// is an error.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "data/chat/format.h"
#include "data/chat/object.h"
#include "data/chat/print.h"

namespace plimsoll::chat {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

bool cannot(Heap& heap, Op op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) return heap.fail(undefined_message(*value));
  return heap.fail(fmt::format("'{}' is not possible between {} and {}", kSigns[static_cast<size_t>(op)],
                               type_name(a), type_name(b)));
}

bool too_large(Heap& heap) { return heap.fail("an integer beyond 64 bits"); }

bool integer_power(Heap& heap, int64_t base, int64_t exponent, Value& out) {
  if (exponent < 0) {
    if (base == 0) return heap.fail("0 cannot be raised to a negative power");
    out = Value::of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
    return true;
  }
  int64_t power = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(power, base, &power)) return too_large(heap);
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) {
      // base is at least 2^32 or its negative here, so any further factor overflows
      return too_large(heap);
    }
  }
  out = Value::of(power);
  return true;
}

bool integers(Heap& heap, Op op, int64_t a, int64_t b, Value& out) {
  int64_t result = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return too_large(heap);
      break;
    case Op::kSub:
      if (__builtin_sub_overflow(a, b, &result)) return too_large(heap);
      break;
    case Op::kMul:
      if (__builtin_mul_overflow(a, b, &result)) return too_large(heap);
      break;
    case Op::kPow:
      return integer_power(heap, a, b, out);
    default:
      if (b == 0) return heap.fail("division by zero");
      if (op == Op::kDiv) {
        out = Value::of(static_cast<double>(a) / static_cast<double>(b));
        return true;
      }
      if (a == INT64_MIN && b == -1)
        return op == Op::kMod ? (out = Value::of(int64_t{0}), true) : too_large(heap);
      const bool rounds_down = a % b != 0 && (a % b < 0) != (b < 0);
      result = op == Op::kFloorDiv ? a / b - rounds_down : a % b + (rounds_down ? b : 0);
  }
  out = Value::of(result);
  return true;
}

/// Python's float remainder has the divisor's sign; the quotient goes with it.
double float_mod(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}
double float_floor_div(double a, double b) {
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double down = std::floor(quotient);
  return quotient - down > 0.5 ? down + 1 : down;
}

bool floats(Heap& heap, Op op, double a, double b, Value& out) {
  if ((op == Op::kDiv || op == Op::kFloorDiv || op == Op::kMod) && b == 0)
    return heap.fail("division by zero");
  switch (op) {
    case Op::kAdd:
      out = Value::of(a + b);
      return true;
    case Op::kSub:
      out = Value::of(a - b);
      return true;
    case Op::kMul:
      out = Value::of(a * b);
      return true;
    case Op::kDiv:
      out = Value::of(a / b);
      return true;
    case Op::kFloorDiv:
      out = Value::of(float_floor_div(a, b));
      return true;
    case Op::kMod:
      out = Value::of(float_mod(a, b));
      return true;
    default: {
      const double power = std::pow(a, b);
      if (std::isnan(power) && !std::isnan(a) && !std::isnan(b)) return heap.fail("a power that is complex");
      if (std::isinf(power) && std::isfinite(a) && std::isfinite(b))
        return heap.fail(a == 0 ? "0.0 cannot be raised to a negative power" : "a number beyond double");
      out = Value::of(power);
      return true;
    }
  }
}

bool join_lists(Heap& heap, const Value& a, const Value& b, Value& out) {
  Value* items = heap.array<Value>(size_t{a.size} + b.size);
  if (items == nullptr) return heap.fail("the template's values take more memory than allowed");
  std::copy_n(a.items, a.size, items);
  std::copy_n(b.items, b.size, items + a.size);
  out = Value::list(items, size_t{a.size} + b.size, a.kind);
  return heap.charge(size_t{a.size} + b.size);
}

bool repeat(Heap& heap, const Value& value, int64_t times, Value& out) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  size_t size = 0;
  if (__builtin_mul_overflow(count, size_t{value.size}, &size) || size > UINT32_MAX)
    return heap.fail("the template's values take more memory than allowed");
  if (!heap.charge(value.is_string() ? size / 16 : size)) return false;
  if (value.is_string()) {
    if (!heap.room(size)) return false;
    char* text = heap.bytes(size);
    if (text == nullptr) return false;
    for (size_t i = 0; i < size; i += value.size) value.string().copy(text + i, value.size);
    out = Value::of(std::string_view(text, size));
    return true;
  }
  Value* items = heap.array<Value>(size);
  if (items == nullptr) return heap.fail("the template's values take more memory than allowed");
  for (size_t i = 0; i < size; i += value.size) std::copy_n(value.items, value.size, items + i);
  out = Value::list(items, size, value.kind);
  return true;
}

}  // namespace

bool binary(Heap& heap, Op op, const Value& a, const Value& b, Value& out) {
  if (op == Op::kAdd && a.is_string() && b.is_string()) return heap.concat(a.string(), b.string(), out);
  if (a.is_number() && b.is_number()) {
    if (a.is_integral() && b.is_integral()) return integers(heap, op, a.as_integer(), b.as_integer(), out);
    return floats(heap, op, a.as_number(), b.as_number(), out);
  }
  if (op == Op::kMod && a.is_string()) return percent_format(heap, a.string(), b, out);
  if (op == Op::kAdd && a.is_list_like() && a.kind == b.kind) return join_lists(heap, a, b, out);
  const auto repeats = [](const Value& value) { return value.is_string() || value.is_list_like(); };
  if (op == Op::kMul && repeats(a) && b.is_integral()) return repeat(heap, a, b.as_integer(), out);
  if (op == Op::kMul && repeats(b) && a.is_integral()) return repeat(heap, b, a.as_integer(), out);
  return cannot(heap, op, a, b);
}

bool negative(Heap& heap, const Value& a, Value& out) {
  if (a.is(Kind::kFloat)) {
    out = Value::of(-a.number);
    return true;
  }
  if (a.is_integral()) return integers(heap, Op::kSub, 0, a.as_integer(), out);
  return heap.fail(a.is_undefined() ? undefined_message(a)
                                    : fmt::format("'-' is not possible for {}", type_name(a)));
}

bool positive(Heap& heap, const Value& a, Value& out) {
  if (!a.is_number())
    return heap.fail(a.is_undefined() ? undefined_message(a)
                                      : fmt::format("'+' is not possible for {}", type_name(a)));
  out = a.is(Kind::kFloat) ? a : Value::of(a.as_integer());
  return true;
}

}  // namespace plimsoll::chat
