#include "library/c_api/border.h"

#include <exception>
#include <mutex>
#include <new>
#include <system_error>

#include "base/caught.h"
#include "base/host.h"
#include "library/notes.h"

namespace plimsoll::library {
namespace {

io::Tree tree_of(const Error& error, const ErrorNumbers& numbers) {
  io::Tree tree = io::Tree::map();
  tree.set("code", io::Tree::of(int64_t{code_of(error.code)}));
  tree.set("kind", io::Tree::of(std::string(kind_of(error.code))));
  tree.set("what", io::Tree::of(error.what));
  tree.set("where", io::Tree::of(error.where));
  tree.set("hint", io::Tree::of(error.hint));
  for (const auto& [name, number] : numbers) tree.set(name, io::Tree::of(number));
  io::Tree more = io::Tree::list();
  for (const Error& other : error.more) more.items.push_back(tree_of(other, {}));
  tree.set("more", std::move(more));
  return tree;
}

std::string message_of(const Error& error) {
  std::string text = error.message();
  for (const Error& other : error.more) text += "\n" + message_of(other);
  return text;
}

}  // namespace

void be_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    set_host({.note = tell_note, .found_bug = [](const std::string& text) { throw Bug(text); }});
  });
}

int code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return PLS_INVALID_ARGUMENT;
    case ErrorCode::kBadData:
      return PLS_BAD_DATA;
    case ErrorCode::kDoesNotFit:
      return PLS_DOES_NOT_FIT;
    case ErrorCode::kIo:
      return PLS_IO;
    case ErrorCode::kInterrupted:
      return PLS_INTERRUPTED;
    case ErrorCode::kDiverged:
      return PLS_DIVERGED;
    case ErrorCode::kInternal:
      break;
  }
  return PLS_INTERNAL;
}

std::string_view kind_of(ErrorCode code) {
  switch (code_of(code)) {
    case PLS_INVALID_ARGUMENT:
      return "invalid_argument";
    case PLS_BAD_DATA:
      return "bad_data";
    case PLS_DOES_NOT_FIT:
      return "does_not_fit";
    case PLS_IO:
      return "io";
    case PLS_INTERRUPTED:
      return "interrupted";
    case PLS_DIVERGED:
      return "diverged";
    default:
      return "internal";
  }
}

int give(pls_error** to, const Error& error, const ErrorNumbers& numbers) {
  const int code = code_of(error.code);
  if (to == nullptr) return code;
  try {
    *to = new pls_error{code, message_of(error), error.hint, io::to_json(tree_of(error, numbers))};
  } catch (...) {  // no memory for the text: the code alone
    *to = nullptr;
  }
  return code;
}

Error thrown_error() {
  try {
    throw;
  } catch (const Bug&) {
    return caught_error();
  } catch (const std::bad_alloc&) {
    return caught_error();
  } catch (const std::system_error&) {
    return caught_error();
  } catch (const std::exception& other) {
    return {ErrorCode::kInternal,
            std::string("bug: unexpected exception: ") + other.what(),
            {},
            "please report this"};
  } catch (...) {
    return {ErrorCode::kInternal, "bug: unexpected exception", {}, "please report this"};
  }
}

int give_thrown(pls_error** to) noexcept {
  try {
    return give(to, thrown_error());
  } catch (...) {
    if (to != nullptr) *to = nullptr;
    return PLS_IO;  // as what was thrown where memory is refused
  }
}

}  // namespace plimsoll::library
