// SPDX-License-Identifier: Apache-2.0
#include "triax/conformance/rank.hpp"

#include <cstring>
#include <utility>

#include "triax/poll_pause.hpp"
#include "triax/wait_deadline.hpp"

namespace triax::conformance {

namespace {

std::unique_ptr<Device> make_device(const RankSetup& setup, int rank) {
  return setup.device ? setup.device(rank) : make_host_device();
}

} // namespace

Rank::Rank(int index, const Layout& layout, Store& store, const RankSetup& setup, Report& report)
    : index_(index),
      layout_(layout),
      store_(store),
      setup_(setup),
      report_(report),
      device_(make_device(setup, index)),
      setup_stream_(device_->make_stream("setup")),
      stream_(device_->make_stream("main")) {}

Rank::~Rank() = default;

void Rank::progress(int rounds) {
  for (int i = 0; i < rounds; ++i) device().progress();
}

TensorView Rank::tensor(DType dtype, const Shape& shape) {
  const TensorView sized(nullptr, dtype, shape);
  memory_.push_back(device().allocate(sized.bytes() + 1, MemoryKind::device)); // + 1: never null
  void* const data = memory_.back()->data();
  const auto bytes = static_cast<std::int64_t>(memory_.back()->bytes());
  if (on_host()) {
    std::memset(data, 0, static_cast<std::size_t>(bytes));
  } else {
    device().fill({data, DType::u8, {bytes}}, 0, *setup_stream_);
    set_up();
  }
  return {data, dtype, shape};
}

/// Freed at the end: CUDA frees pinned memory when all streams are idle, and a check may hold one back.
void* Rank::pinned(std::size_t bytes) {
  if (bytes > pinned_bytes_) {
    memory_.push_back(device().allocate(bytes, MemoryKind::pinned));
    pinned_ = memory_.back()->data();
    pinned_bytes_ = bytes;
  }
  return pinned_;
}

void Rank::write(const TensorView& view, const void* values) {
  if (view.bytes() == 0) return;
  if (on_host()) {
    std::memcpy(view.data(), values, view.bytes());
    return;
  }
  void* const staged = pinned(view.bytes());
  std::memcpy(staged, values, view.bytes());
  device().upload(view.flat(), {staged, view.dtype(), {view.elements()}}, *setup_stream_);
  set_up();
}

void Rank::read(const TensorView& view, void* values) {
  if (view.bytes() == 0) return;
  if (on_host()) {
    std::memcpy(values, view.data(), view.bytes());
    return;
  }
  void* const staged = pinned(view.bytes());
  setup_stream_->wait(stream().record());
  device().download({staged, view.dtype(), {view.elements()}}, view.flat(), *setup_stream_);
  set_up();
  std::memcpy(values, staged, view.bytes());
}

void Rank::finish() {
  if (!on_host()) device().wait(stream().record(), deadline());
}

/// Waits even if the rank has been aborted.
void Rank::set_up() {
  const Event done = setup_stream_->record();
  WaitDeadline until(deadline());
  PollPause pause;
  while (!done.fired()) {
    TRIAX_REQUIRE(!until.passed(), "memory of rank {} was not set up", index_);
    pause.after_poll(device().progress());
  }
}

CommBackend& Rank::backend() {
  if (backend_) return *backend_;
  TRIAX_REQUIRE(setup_.backend, "the ranks of this check have no communicator backend");
  backend_ = setup_.backend({setup_.options, *setup_.log, layout_, index_, 1});
  backend_->start(device());
  return *backend_;
}

Communicator& Rank::join(const Group& group) {
  CommBackend& joining = backend();
  std::unique_ptr<Communicator> joined =
      call_plugin("join", typeid(joining), [&] { return joining.join(group, store_, deadline()); });
  if (!joined) throw Error("join() returned no communicator", text("group {}", group.id));
  await_count(text("conformance: joined {}, {}", group.id, ++counts_["join " + group.id]), group.size());
  const std::lock_guard lock(mutex_);
  communicators_.push_back(std::move(joined));
  if (abort_flag_.raised()) communicators_.back()->abort(abort_flag_.reason());
  return *communicators_.back();
}

void Rank::barrier(std::string_view name) {
  await_count(text("conformance: {}, {}", name, ++counts_[std::string(name)]), layout_.world_size());
}

/// Adds 1 to a counter of the store, and waits until it is `count`.
void Rank::await_count(const std::string& key, int count) {
  WaitDeadline until(long_deadline());
  PollPause pause;
  for (std::int64_t there = store_.add(key, 1); there < count; there = store_.add(key, 0)) {
    if (until.passed()) throw Error(text("timed out at barrier \"{}\": {} of {} ranks arrived", key, there, count));
    abort_flag_.check();
    pause.after_poll(device().progress());
  }
}

void Rank::abort(std::string_view why) noexcept {
  abort_flag_.raise(why);
  device().abort_flag().raise(why);
  const std::lock_guard lock(mutex_);
  for (const auto& communicator : communicators_) communicator->abort(why);
}

} // namespace triax::conformance
