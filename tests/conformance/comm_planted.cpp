// SPDX-License-Identifier: Apache-2.0
// comm-planted: comm-local with one fault, which the option `fault` names. The conformance suite must find each.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <triax/plugin.hpp>
#include <triax/rendezvous.hpp>
#include <utility>
#include <vector>

#include "local_communicator.hpp"

namespace triax::comm_planted {

namespace {

using comm_local::GroupState;
using comm_local::LocalCommunicator;
using Kind = Collective::Kind;

constexpr const char* kFaults =
    "none|throws|order|scatter_order|abort|wrong_order|channels|bytes|refused_bytes|element|root|hang|crash|exits|"
    "completes_inside|"
    "empty_completes_inside|ignores_stream|sends_copy|allocates|throws_after_abort|barrier|barrier_ignores_abort|"
    "buffered|early_event|mixed_types|joins_late|joins_without_names|joined_traits|hang_traits";

class PlantedCommunicator final : public LocalCommunicator {
 public:
  PlantedCommunicator(const Group& group, std::shared_ptr<GroupState> state,
                      std::unique_ptr<LocalCommunicator> reversed, Device& device, std::string fault)
      : LocalCommunicator(group, std::move(state), device),
        fault_(std::move(fault)),
        reversed_(std::move(reversed)),
        stream_(device.make_stream("planted")) {}

  void abort(std::string_view why) noexcept override {
    aborted_ = true;
    if (has("abort")) return;
    if (reversed_) reversed_->abort(why);
    LocalCommunicator::abort(why);
  }
  void progress() noexcept override {
    if (!has("wrong_order")) LocalCommunicator::progress();
  }
  void barrier(Deadline deadline) override {
    if (has("barrier")) return;
    try {
      LocalCommunicator::barrier(deadline);
    } catch (const Error&) {
      if (!has("barrier_ignores_abort")) throw;
      while (Clock::now() < deadline) std::this_thread::yield();
      throw Error("barrier of group tensor.0: timed out waiting for rank 0");
    }
  }

 protected:
  Work do_collective(const Collective& of, const TensorView& in, const TensorView& out, Stream& stream,
                     ActionId action) override {
    plant_in_collective(of);
    if (has("order") && of.kind == Kind::all_reduce && reversed_) {
      count(payload_of(of));
      return reversed_->post(of, in, out, stream, action);
    }
    if (has("scatter_order") && of.kind == Kind::reduce_scatter && reversed_ && ++scatters_ % 2 == 0) {
      count(payload_of(of));
      return reversed_->post(of, reversed_parts(in), out, stream, action);
    }
    if (has("element") && of.kind == Kind::all_reduce && of.elements > 1000) {
      Collective less = of;
      --less.elements;
      const std::int64_t kept = less.elements;
      return LocalCommunicator::do_collective(less, in.flat().slice(0, 0, kept), out.flat().slice(0, 0, kept), stream,
                                              action);
    }
    Collective changed = of;
    if (has("root") && of.kind == Kind::broadcast) changed.root = (of.root + 1) % size();
    const Work work =
        LocalCommunicator::do_collective(changed, in, out, has("ignores_stream") ? *stream_ : stream, action);
    return has("completes_inside") ? Work{Event(), action} : work;
  }

  Work do_exchange(std::span<const Transfer> transfers, Stream& stream, ActionId action) override {
    if (has("crash")) ::raise(SIGSEGV);
    if (has("allocates")) kept_ = std::make_unique<int>(static_cast<int>(transfers.size()));
    if (has("early_event") && std::ranges::all_of(transfers, is_send)) {
      LocalCommunicator::do_exchange(transfers, *stream_, action);
      return {Event(), action};
    }
    if (has("empty_completes_inside") && std::ranges::all_of(transfers, is_empty)) return {Event(), action};
    if (!has("channels") && !has("mixed_types") && !has("sends_copy"))
      return LocalCommunicator::do_exchange(transfers, stream, action);
    std::vector<Transfer> changed(transfers.begin(), transfers.end());
    for (Transfer& transfer : changed) {
      if (has("channels")) transfer.channel = 0;
      if (has("sends_copy") && is_send(transfer)) transfer.view = copied(transfer.view);
      if (has("mixed_types")) transfer.view = {transfer.view.data(), DType::u8, {as_bytes(transfer.view)}};
    }
    return LocalCommunicator::do_exchange(changed, stream, action);
  }

 private:
  bool has(std::string_view fault) const { return fault_ == fault; }
  static bool is_send(const Transfer& transfer) { return transfer.direction == Direction::send; }
  static bool is_empty(const Transfer& transfer) { return transfer.view.elements() == 0; }
  /// The copy lives as long as the communicator.
  TensorView copied(const TensorView& view) {
    const auto* const begin = view.as<const std::byte>();
    std::vector<std::byte>& copy =
        *copies_.emplace_back(std::make_unique<std::vector<std::byte>>(begin, begin + view.bytes()));
    return {copy.data(), view.dtype(), view.shape()};
  }
  /// A copy, in which `reversed_` finds the part of each member.
  TensorView reversed_parts(const TensorView& view) {
    const TensorView copy = copied(view);
    const auto part = static_cast<std::ptrdiff_t>(view.bytes()) / size();
    for (int member = 0; member < size(); ++member)
      std::copy_n(view.as<const std::byte>() + (size() - 1 - member) * part, part,
                  copy.as<std::byte>() + member * part);
    return copy;
  }
  static std::int64_t as_bytes(const TensorView& view) { return static_cast<std::int64_t>(view.bytes()); }

  void plant_in_collective(const Collective& of) {
    if (has("throws") && of.kind == Kind::all_to_all) throw Error("all_to_all fails");
    if (has("throws_after_abort") && aborted_) throw Error("the group has been aborted");
    if (has("refused_bytes") && aborted_) count({8, 8});
    if (has("bytes") && of.kind == Kind::all_gather) count({8, 8});
    if (has("exits") && of.kind == Kind::broadcast) std::_Exit(3);
    while (has("hang") && of.kind == Kind::broadcast) std::this_thread::yield();
  }

  const std::string fault_;
  const std::unique_ptr<LocalCommunicator> reversed_; // the members in the other order
  const std::unique_ptr<Stream> stream_;
  std::unique_ptr<int> kept_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> copies_;
  bool aborted_ = false;
  int scatters_ = 0;
};

class PlantedBackend final : public CommBackend {
 public:
  explicit PlantedBackend(const PluginContext& context) : fault_(context.options.text("fault")) {}

  CommTraits traits() const override {
    while (fault_ == "hang_traits") ::pause();
    CommTraits traits;
    traits.reduction = CommTraits::Reduction::rank_order;
    traits.ranks = CommTraits::Ranks::same_process;
    if (fault_ == "buffered") traits.send = CommTraits::Send::buffered;
    if (fault_ == "buffered") traits.buffered_bytes = 64;
    if (fault_ == "joined_traits" && has_joined_) traits.order = CommTraits::Order::serial;
    return traits;
  }
  Refusals supports(const CommRequest&) const override { return {}; }
  void start(Device& device) override { device_ = &device; }

  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    Rendezvous rendezvous("comm-planted", 1,
                          {group, store, *device_, fault_ == "joins_late" ? deadline_in(3600) : deadline});
    has_joined_ = true;
    if (fault_ == "joins_without_names") return joined_without_names(rendezvous, group, store);
    return joined(rendezvous, group, store);
  }

 private:
  /// Replaces the text of an error by one that has digits, but no ranks.
  std::unique_ptr<Communicator> joined_without_names(Rendezvous& rendezvous, const Group& group, Store& store) {
    try {
      return joined(rendezvous, group, store);
    } catch (const Error&) {
      if (group.group_rank == 0) throw Error("timed out after 0.2 s on 127.0.0.1");
      throw;
    }
  }

  std::unique_ptr<Communicator> joined(Rendezvous& rendezvous, const Group& group, Store& store) {
    return rendezvous.run([&] {
      rendezvous.publish({text("{}", reinterpret_cast<std::uintptr_t>(&store))});
      const std::string key = text("{} {}", rendezvous.key(), rendezvous.collect().front().front());
      std::shared_ptr<GroupState> state = GroupState::shared(key, group);
      std::shared_ptr<GroupState> other = GroupState::shared(key + " reversed", reversed(group));
      rendezvous.reach("shared");
      for (std::string missing; !(missing = rendezvous.missing("shared")).empty(); rendezvous.poll())
        if (rendezvous.expired()) throw rendezvous.timeout(missing);
      std::unique_ptr<LocalCommunicator> second;
      if (fault_ == "order" || fault_ == "scatter_order")
        second = std::make_unique<LocalCommunicator>(reversed(group), std::move(other), *device_);
      return std::make_unique<PlantedCommunicator>(group, std::move(state), std::move(second), *device_, fault_);
    });
  }

  static Group reversed(const Group& group) {
    return {group.axis, group.id, {group.ranks.rbegin(), group.ranks.rend()}, group.size() - 1 - group.group_rank};
  }

  const std::string fault_;
  Device* device_ = nullptr;
  bool has_joined_ = false;
};

constexpr triax_option kOptions[] = {option_string("fault", "none", kFaults, "what is wrong with this communicator")};

} // namespace

} // namespace triax::comm_planted

TRIAX_PLUGIN(triax::CommBackend, triax::comm_planted::PlantedBackend, "comm-planted", "0.1.0",
             "comm-local with a planted fault", triax::comm_planted::kOptions)
