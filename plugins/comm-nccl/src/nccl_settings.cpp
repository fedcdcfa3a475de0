// SPDX-License-Identifier: Apache-2.0
#include "nccl_settings.hpp"

#include <cstdlib>
#include <string>
#include <vector>

#include "triax/cuda/launch_blocking.hpp"

namespace triax::comm_nccl {

namespace {

/// Value of the variable; null if it is unset or empty.
const char* given(const char* name) {
  const char* value = std::getenv(name);
  return value && *value ? value : nullptr;
}

/// Parses numbers as NCCL does: 1, 01 and 0x1 are equal.
bool is(const char* name, long long value) {
  const char* found = given(name);
  if (!found) return false;
  char* end = nullptr;
  const long long number = std::strtoll(found, &end, 0);
  return end != found && number == value;
}

class Reader {
 public:
  explicit Reader(Settings& settings) : settings_(settings) {}

  /// NCCL_COMM_BLOCKING overrides the configuration of a communicator.
  void calls_must_not_block() {
    if (is("NCCL_COMM_BLOCKING", 1))
      refuse("NCCL_COMM_BLOCKING = 1 in the environment: NCCL's calls would block, and no deadline would end them",
             "unset NCCL_COMM_BLOCKING");
  }

  void addresses_must_differ() {
    if (const char* address = given("NCCL_COMM_ID"))
      refuse(text("NCCL_COMM_ID = {} in the environment: all groups of a run would use one address", address),
             "unset NCCL_COMM_ID: the ranks exchange addresses through the job's store");
  }

  void edges_need_queues() {
    const char* connections = given("CUDA_DEVICE_MAX_CONNECTIONS");
    if (!connections) return;
    constexpr int kQueues = 8; // CUDA's default: a stage uses one for compute, one for reductions, four for edges
    const auto number = std::strtoll(connections, nullptr, 0);
    if (settings_.edge_communicators && number < kQueues)
      return refuse(
          text("edge_communicators = true, but CUDA_DEVICE_MAX_CONNECTIONS = {} in the environment: streams "
               "that share a queue of the GPU wait for each other",
               connections),
          text("unset CUDA_DEVICE_MAX_CONNECTIONS, set it to {} or more, or leave edge_communicators out", kQueues),
          {"comm.edge_communicators"});
    if (number == 1)
      note(
          "CUDA_DEVICE_MAX_CONNECTIONS = 1 in the environment: all streams of the GPU share one queue, so transfers "
          "and kernels start in the order in which they were launched");
  }

  void posts_must_not_block() {
    if (const char* value = cuda::launch_blocking())
      refuse(
          text("CUDA_LAUNCH_BLOCKING = {} in the environment: each call would wait for its peers inside NCCL, without "
               "a timeout, and ranks of a pipeline would deadlock",
               value),
          "unset CUDA_LAUNCH_BLOCKING");
  }

  void order_must_be_the_hosts() {
    if (is(kOrder, 0))
      settings_.order_refusals = make_refusal(ErrorCode::kConflict, {},
                                              "comm-nccl: {} = 0 in the environment: calls of several communicators "
                                              "would run in any order, and ranks would deadlock",
                                              kOrder)
                                     .with_hint("unset {}: it is then set to 1", kOrder);
  }

  void slower_ways() {
    for (const char* name : {"NCCL_P2P_DISABLE", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"})
      if (is(name, 1)) note(text("{} = 1 in the environment: NCCL does not use a faster path between ranks", name));
    if (const char* level = given("NCCL_P2P_LEVEL"))
      note(text("NCCL_P2P_LEVEL = {} in the environment limits the distance of GPUs that access each other directly",
                level));
    if (given("NCCL_HOSTID") && !settings_.several_ranks_per_gpu)
      note(text("NCCL_HOSTID = {} in the environment: for NCCL, ranks with other values are on other machines",
                given("NCCL_HOSTID")));
  }

  void of_another_program() {
    for (const char* name : {"NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_BLOCKING_WAIT",
                             "TORCH_NCCL_BLOCKING_WAIT"})
      if (given(name)) note(text("{} has no effect: only PyTorch reads it; train.stall_timeout_s limits waits", name));
  }

 private:
  void refuse(const std::string& reason, const std::string& hint, const std::vector<std::string>& keys = {}) {
    settings_.refusals.add(make_refusal(ErrorCode::kConflict, keys, "comm-nccl: {}", reason).with_hint("{}", hint));
  }
  void note(std::string line) { settings_.notes.push_back("comm-nccl: " + std::move(line)); }

  Settings& settings_;
};

} // namespace

Settings read_settings(const Options& options) {
  Settings settings;
  settings.edge_communicators = options.flag("edge_communicators");
  settings.several_ranks_per_gpu = options.flag("several_ranks_per_gpu");
  settings.register_buffers = options.flag("register_buffers");
  Reader reader(settings);
  reader.calls_must_not_block();
  reader.addresses_must_differ();
  reader.edges_need_queues();
  reader.posts_must_not_block();
  reader.order_must_be_the_hosts();
  reader.slower_ways();
  reader.of_another_program();
  return settings;
}

std::vector<Variable> variables_for_shared_gpu(int rank) {
  // NCCL_HOSTID makes each rank look like a separate machine, because NCCL refuses two ranks on one GPU of one machine.
  // Features that use the GPU as a whole are off, and kernels are small, so that the kernels of all ranks fit.
  const std::vector<Variable> all = {{"NCCL_HOSTID", text("triax-rank-{}", rank)},
                                     {"NCCL_MNNVL_ENABLE", "0"},
                                     {"NCCL_NVLS_ENABLE", "0"},
                                     {"NCCL_RAS_ENABLE", "0"},
                                     {"NCCL_MAX_CTAS", "2"}};
  std::vector<Variable> missing;
  for (const Variable& variable : all)
    if (!given(variable.name.c_str())) missing.push_back(variable);
  return missing;
}

} // namespace triax::comm_nccl
