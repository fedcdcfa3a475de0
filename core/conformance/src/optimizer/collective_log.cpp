// SPDX-License-Identifier: Apache-2.0
#include "collective_log.hpp"

#include <utility>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::conformance {

namespace {

std::string post_text(const Posted& post) {
  return text("{} over {}", post.call, post.group);
}

} // namespace

std::string to_text(const std::vector<Posted>& posts) {
  std::string out;
  for (const Posted& post : posts) out += (out.empty() ? "" : ", ") + post_text(post);
  return out.empty() ? "nothing" : out;
}

std::string call_text(const std::vector<Posted>& posts, std::size_t at) {
  return at < posts.size() ? post_text(posts[at]) : "nothing";
}

std::vector<Posted> seen_by_group(const std::vector<Posted>& posts, std::string_view group) {
  std::vector<Posted> out = posts;
  for (Posted& post : out)
    if (post.group != group) post.call.clear();
  return out;
}

void CollectiveLog::add(Posted post) {
  if (!is_fixed_) return posts_.push_back(std::move(post));
  const std::size_t at = count_++;
  if (at < posts_.size() && posts_[at] == post) return;
  throw Error(text("call {} of a step on a communicator is {}, but {} in its dry run", at, post_text(post),
                   call_text(posts_, at)));
}

void CollectiveLog::end_step() {
  const std::size_t count = std::exchange(count_, 0);
  if (is_fixed_ && count < posts_.size())
    throw Error(text("a step ends without {}, which is call {} on a communicator in its dry run",
                     post_text(posts_[count]), count));
}

void LoggedCommunicator::barrier(Deadline deadline) {
  if (real_) real_->barrier(deadline);
}

void LoggedCommunicator::abort(std::string_view why) noexcept {
  if (real_) real_->abort(why);
}

Work LoggedCommunicator::do_collective(const Collective& collective, const TensorView& in, const TensorView& out,
                                       Stream& stream, ActionId action) {
  log_.add({group().axis, to_text(collective)});
  if (real_) return real_->post(collective, in, out, stream, action);
  return {{}, action};
}

Work LoggedCommunicator::do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) {
  log_.add({group().axis, "exchange"});
  if (real_) return real_->exchange(transfers, stream, action);
  return {{}, action};
}

} // namespace triax::conformance
