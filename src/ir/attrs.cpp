#include "ir/attrs.h"

#include <algorithm>

#include "base/check.h"

namespace plimsoll::ir {
namespace {

template <typename T>
const T& get(const Attrs& attrs, std::string_view key) {
  const Attr* attr = attrs.find(key);
  PLIMSOLL_CHECK(attr != nullptr, std::string(key));
  const T* value = std::get_if<T>(attr);
  PLIMSOLL_CHECK(value != nullptr, std::string(key));
  return *value;
}

}  // namespace

void Attrs::set(std::string_view key, Attr value) {
  if (entries_ == nullptr)
    entries_ = std::make_shared<Entries>();
  else if (entries_.use_count() > 1)
    entries_ = std::make_shared<Entries>(*entries_);
  auto it = std::lower_bound(entries_->begin(), entries_->end(), key,
                             [](const auto& e, std::string_view k) { return e.first < k; });
  if (it != entries_->end() && it->first == key)
    it->second = std::move(value);
  else
    entries_->emplace(it, std::string(key), std::move(value));
}

const Attrs::Entries& Attrs::entries() const {
  static const Entries kNone;
  return entries_ == nullptr ? kNone : *entries_;
}

const Attr* Attrs::find(std::string_view key) const {
  for (const auto& e : entries())
    if (e.first == key) return &e.second;
  return nullptr;
}

int64_t Attrs::i64(std::string_view key) const { return get<int64_t>(*this, key); }
double Attrs::f64(std::string_view key) const { return get<double>(*this, key); }
bool Attrs::flag(std::string_view key) const { return find(key) != nullptr && get<bool>(*this, key); }
const std::string& Attrs::str(std::string_view key) const { return get<std::string>(*this, key); }
const std::vector<int64_t>& Attrs::ints(std::string_view key) const {
  return get<std::vector<int64_t>>(*this, key);
}

}  // namespace plimsoll::ir
