// The operators of integers, texts and lists, as Python has them; integers have 64 bits, and what goes beyond
// is an error.
#include <fmt/format.h>

#include <algorithm>

#include "templates/object.h"
#include "templates/print.h"

namespace plimsoll::templates {
namespace {

constexpr std::string_view kSigns[] = {"+", "-", "*", "%"};

bool cannot(Heap& heap, Op op, const Value& a, const Value& b) {
  for (const Value* value : {&a, &b})
    if (value->is_undefined()) return heap.fail(undefined_message(*value));
  return heap.fail(fmt::format("'{}' is not possible between {} and {}", kSigns[static_cast<size_t>(op)],
                               type_name(a), type_name(b)));
}

bool integers(Heap& heap, Op op, int64_t a, int64_t b, Value& out) {
  int64_t result = 0;
  bool overflows = false;
  switch (op) {
    case Op::kAdd:
      overflows = __builtin_add_overflow(a, b, &result);
      break;
    case Op::kSub:
      overflows = __builtin_sub_overflow(a, b, &result);
      break;
    case Op::kMul:
      overflows = __builtin_mul_overflow(a, b, &result);
      break;
    default:
      if (b == 0) return heap.fail("division by zero");
      result = b == -1 ? 0 : a % b;  // of the least integer it would trap
      if (result != 0 && (result < 0) != (b < 0)) result += b;
  }
  if (overflows) return heap.fail("an integer beyond 64 bits");
  out = Value::of(result);
  return true;
}

bool join_lists(Heap& heap, const Value& a, const Value& b, Value& out) {
  Value* items = heap.array<Value>(size_t{a.size} + b.size);
  if (items == nullptr) return heap.fail("the template's values take more memory than allowed");
  std::copy_n(a.items, a.size, items);
  std::copy_n(b.items, b.size, items + a.size);
  out = Value::list(items, size_t{a.size} + b.size, a.kind);
  return heap.charge(size_t{a.size} + b.size);
}

bool repeat(Heap& heap, std::string_view value, int64_t times, Value& out) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  size_t size = 0;
  if (__builtin_mul_overflow(count, value.size(), &size) || size > UINT32_MAX)
    return heap.fail("the template's values take more memory than allowed");
  if (!heap.charge(size / 16) || !heap.room(size)) return false;
  char* text = heap.bytes(size);
  if (text == nullptr) return false;
  for (size_t i = 0; i < size; i += value.size()) value.copy(text + i, value.size());
  out = Value::of(std::string_view(text, size));
  return true;
}

}  // namespace

bool binary(Heap& heap, Op op, const Value& a, const Value& b, Value& out) {
  if (op == Op::kAdd && a.is_string() && b.is_string()) return heap.concat(a.string(), b.string(), out);
  if (a.is_integral() && b.is_integral()) return integers(heap, op, a.as_integer(), b.as_integer(), out);
  if (a.is_number() && b.is_number())
    return heap.fail("arithmetic of floats is not supported: templates of public models do without it");
  if (op == Op::kMod && a.is_string())
    return heap.fail("'%' of a text is not supported: templates of public models do without it");
  if (op == Op::kAdd && a.is_list_like() && a.kind == b.kind) return join_lists(heap, a, b, out);
  if (op == Op::kMul && a.is_string() && b.is_integral())
    return repeat(heap, a.string(), b.as_integer(), out);
  if (op == Op::kMul && b.is_string() && a.is_integral())
    return repeat(heap, b.string(), a.as_integer(), out);
  return cannot(heap, op, a, b);
}

bool negative(Heap& heap, const Value& a, Value& out) {
  if (a.is_integral()) return integers(heap, Op::kSub, 0, a.as_integer(), out);
  if (a.is(Kind::kFloat)) return out = Value::of(-a.number), true;
  return heap.fail(a.is_undefined() ? undefined_message(a)
                                    : fmt::format("'-' is not possible for {}", type_name(a)));
}

}  // namespace plimsoll::templates
