// SPDX-License-Identifier: Apache-2.0
// comm-faulty: wraps the communicator that an option names, and injects faults, for tests of engines, launchers and
// plugins.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <triax/plugin.hpp>
#include <triax/plugin_loader.hpp>
#include <utility>
#include <vector>

#include "faulty_communicator.hpp"

namespace triax::comm_faulty {

namespace {

constexpr const char* kFaults = "none|delay|reorder|drop|corrupt|fail|die|hang_post|hang_advance|hang_join|refuse";

constexpr triax_option kOptions[] = {
    option_string("inner", nullptr, nullptr, "the communicator that it wraps: a name, or the path of its file"),
    option_list(option_string("inner_options", "[]", nullptr, "options of that communicator: \"KEY=VALUE\"")),
    option_string("fault", "none", kFaults, "what is injected"),
    option_int("rank", "-1", -1, 1000000, "rank in which the fault is injected; -1: all"),
    option_string("axis", "", nullptr,
                  "axis whose groups get the fault, a product such as \"tensor*data\", or "
                  "\"world\", the group of triax bench comm; empty: all"),
    option_int("at", "0", 0, 1e15,
               "number of the post that gets the fault, counted from 1 in each group; 0: every "
               "post, with probability"),
    option_float("probability", "1.0", 0, 1, "share of the posts that get the fault"),
    option_int("seed", "0", 0, 1e15, "seed of the random choices"),
    option_float("delay_ms", "2.0", 0, 60000, "the longest time for which delay and reorder hold a call back"),
};

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

class FaultyBackend final : public CommBackend {
 public:
  explicit FaultyBackend(const PluginContext& context)
      : options_(FaultOptions::read(context.options)),
        layout_(context.layout),
        rank_(context.rank),
        log_(context.log),
        inner_(create_plugin<CommBackend>(context.loader, context.options.text("inner"),
                                          context.options.list<std::string>("inner_options"))) {}

  /// Those of the wrapped backend. A call that the host holds back is not in stream order.
  CommTraits traits() const override {
    CommTraits out = inner_->traits();
    const Fault fault = options_.fault;
    if (fault == Fault::delay || fault == Fault::drop || fault == Fault::hang_advance) out.stream_ordered = false;
    return out;
  }

  Refusals supports(const CommRequest& request) const override {
    Refusals out;
    if (options_.fault == Fault::refuse)
      out.add(make_refusal(ErrorCode::kUnsupported, {"comm.fault"}, "fault = \"refuse\" refuses every run")
                  .with_hint("choose another fault"));
    if (options_.rank >= layout_.world_size())
      out.add(make_refusal(ErrorCode::kOutOfRange, {"comm.rank"}, "rank = {}: the run has {} ranks, counted from 0",
                           options_.rank, layout_.world_size())
                  .with_hint("choose one of them, or -1 for all"));
    if (options_.fault == Fault::corrupt && request.device != DeviceKind::host)
      out.add(make_refusal(ErrorCode::kUnsupported, {"comm.fault"},
                           "fault = \"corrupt\" changes host memory; the device is {}", name_of(request.device))
                  .with_hint("use a kernel set that computes on the host"));
    check_axis(request.axes, out);
    out.add(inner_->supports(request));
    return out;
  }

  void start(Device& device) override {
    device_ = &device;
    inner_->start(device);
  }

  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    TRIAX_REQUIRE(device_, "comm-faulty: join() before start()");
    while (options_.fault == Fault::hang_join && options_.selects(rank_) && options_.selects(group)) ::pause();
    return std::make_unique<FaultyCommunicator>(inner_->join(group, store, deadline), inner_->traits(), options_,
                                                *device_, log_);
  }

  void* extension(std::string_view id) noexcept override { return inner_->extension(id); }

 private:
  /// A fault on groups that this table does not join would never occur. Groups over several axes are named in the
  /// layout's order, and are joined by the communicator of the last one.
  void check_axis(const std::vector<std::string>& served, Refusals& out) const {
    if (options_.axis.empty() || options_.axis == "world" || served.empty()) return;
    std::vector<std::string> factors;
    for (const Axis& axis : layout_.axes())
      if (text("*{}*", options_.axis).find(text("*{}*", axis.name)) != std::string::npos) factors.push_back(axis.name);
    const bool is_group = !factors.empty() && Layout::product_name(factors) == options_.axis;
    if (is_group && std::ranges::count(served, factors.back()) > 0) return;
    out.add(make_refusal(ErrorCode::kInvalidValue, {"comm.axis"},
                         "axis = \"{}\" is not an axis that it serves in this run", options_.axis)
                .with_hint("choose one of {}, or leave axis out", joined(served)));
  }

  const FaultOptions options_;
  const Layout& layout_;
  const int rank_;
  Log& log_;
  const std::shared_ptr<CommBackend> inner_;
  Device* device_ = nullptr;
};

} // namespace

} // namespace triax::comm_faulty

TRIAX_PLUGIN(triax::CommBackend, triax::comm_faulty::FaultyBackend, "comm-faulty", "0.1.0",
             "wraps another communicator and injects faults, for tests", triax::comm_faulty::kOptions)
