// SPDX-License-Identifier: Apache-2.0
// comm-mpi: a communicator over MPI's messages, for ranks that are processes.
#include <memory>
#include <optional>
#include <triax/p2p/join.hpp>
#include <triax/plugin.hpp>
#include <triax/process_start.hpp>

#include "mpi_transport.hpp"
#include "pmix_server.hpp"

namespace triax::comm_mpi {

namespace {

constexpr triax_option kOptions[] = {
    option_string("wait", "yield", "yield|spin", "how a rank waits: pauses after each poll, or after up to 2000 polls"),
    option_int("staging_bytes", "33554432", 0, 1e12,
               "bytes of pinned memory allocated at the start for GPU memory; a call that needs more allocates more"),
};

constexpr int kSpinPolls = 2000;

class MpiBackend final : public CommBackend, public ProcessStart {
 public:
  explicit MpiBackend(const PluginContext& context)
      : log_(context.log),
        world_(context.layout.world_size()),
        polls_(context.options.text("wait") == "spin" ? kSpinPolls : 0),
        staging_bytes_(static_cast<std::size_t>(context.options.integer("staging_bytes"))) {}

  void* extension(std::string_view id) noexcept override {
    return id == ProcessStart::kExtension ? static_cast<ProcessStart*>(this) : nullptr;
  }
  void serve(int ranks) override { server_ = PmixServer::shared(ranks, log_); }
  std::vector<std::pair<std::string, std::string>> variables(int rank) override { return server_->variables(rank); }

  CommTraits traits() const override { return p2p::traits(CommTraits::Ranks::one_per_process); }

  Refusals supports(const CommRequest& request) const override {
    if (request.device == DeviceKind::sim)
      return make_refusal(ErrorCode::kUnsupported, {},
                          "comm-mpi moves host and GPU memory; the kernel set's device is sim");
    return {};
  }

  void start(Device& device) override { device_ = &device; }

  std::unique_ptr<Communicator> join(const Group& group, Store& store, Deadline deadline) override {
    TRIAX_REQUIRE(device_, "comm-mpi: join() before start()");
    // Here, because MPI waits for all processes, and only join() may block.
    if (!transport_) transport_.emplace(*device_, world_, staging_bytes_, polls_);
    return p2p::join(*transport_, group, store, deadline, next_);
  }

 private:
  Log& log_;
  const int world_, polls_;
  const std::size_t staging_bytes_;
  std::shared_ptr<PmixServer> server_; // in the launcher's process
  Device* device_ = nullptr;
  std::optional<MpiTransport> transport_; // from the first join()
  int next_ = 0;                          // lowest group number that no group has used
};

} // namespace

} // namespace triax::comm_mpi

TRIAX_PLUGIN(triax::CommBackend, triax::comm_mpi::MpiBackend, "comm-mpi", "0.1.0",
             "ranks that are processes, over Open MPI: shared memory and networks", triax::comm_mpi::kOptions)
