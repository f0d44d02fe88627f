// Modules of one type in a row: `ModuleList<Mlp> layers{*this, "layers", 8}` has layers.0 to layers.7.
#pragma once

#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "plimsoll/module.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

template <class T>
class ModuleList : public Module {
  /// Within a loss function what is done with a layer in a loop's body stands in that layer's scope.
  template <class Items, class Item>
  class Iterator {
   public:
    Iterator(Items* items, size_t index) : items_(items), index_(index), scope_(layer_scope()) {}
    Item& operator*() const { return (*items_)[index_]; }
    Item* operator->() const { return &(*items_)[index_]; }
    Iterator& operator++() {
      scope_.reset();
      ++index_;
      scope_.emplace(layer_scope());
      return *this;
    }
    bool operator==(const Iterator& other) const { return index_ == other.index_; }

   private:
    [[nodiscard]] Scope layer_scope() const {
      return index_ < items_->size() ? Scope::of_module(detail::current_trace, (*items_)[index_].path())
                                     : Scope();
    }
    Items* items_;
    size_t index_;
    std::optional<Scope> scope_;
  };

 public:
  /// `count` of them, each made with (*this, its index as text, arguments...) where T takes that, else with
  /// the arguments alone.
  template <class... Arguments>
  ModuleList(Module& parent, std::string_view name, size_t count, const Arguments&... arguments)
      : Module(parent, name) {
    static_assert(std::is_base_of_v<Module, T>, "what a ModuleList holds derives from Module");
    for (size_t i = 0; i < count; ++i) {
      const std::string index = std::to_string(i);
      if constexpr (std::is_constructible_v<T, Module&, const std::string&, const Arguments&...>) {
        items_.emplace_back(*this, index, arguments...);
      } else {
        adopt(index, items_.emplace_back(arguments...));
      }
    }
  }

  [[nodiscard]] size_t size() const { return items_.size(); }
  T& operator[](size_t index) { return items_[index]; }
  const T& operator[](size_t index) const { return items_[index]; }
  auto begin() { return Iterator<std::deque<T>, T>(&items_, 0); }
  auto end() { return Iterator<std::deque<T>, T>(&items_, items_.size()); }
  auto begin() const { return Iterator<const std::deque<T>, const T>(&items_, 0); }
  auto end() const { return Iterator<const std::deque<T>, const T>(&items_, items_.size()); }

 private:
  std::deque<T> items_;  // they are not moved
};

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
