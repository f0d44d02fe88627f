#include "planner/programs/program_cache.h"

#include <algorithm>
#include <utility>

namespace plimsoll::planner {

const ProgramBeginning* ProgramCache::find_beginning(const BeginningKey& key) const {
  const auto found = std::ranges::find(beginnings_, key, &ProgramBeginning::key);
  return found == beginnings_.end() ? nullptr : &*found;
}

void ProgramCache::add_beginning(ProgramBeginning beginning) {
  if (beginnings_.size() == kMostBeginnings) beginnings_.erase(beginnings_.begin());
  beginnings_.push_back(std::move(beginning));
}

const BoundProgram* ProgramCache::find_update(const std::vector<GradientStates>& gradients,
                                              const passes::OffloadOptions& offload) const {
  const bool is_it = update_ && update_->gradients == gradients && update_->offload == offload;
  return is_it ? &update_->program : nullptr;
}

void ProgramCache::set_update(std::vector<GradientStates> gradients, const passes::OffloadOptions& offload,
                              BoundProgram update) {
  update_ = {std::move(gradients), offload, std::move(update)};
}

}  // namespace plimsoll::planner
