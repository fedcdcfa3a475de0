// SPDX-License-Identifier: Apache-2.0
// UCX of one rank: a context, one worker, and one endpoint per peer.
//
// Threads: the rank's main thread only; UCX's thread mode is "single". Blocking: the destructor, for a bounded time, to
// flush pending sends. Errors: the constructor and connect() throw.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <triax/p2p/transport.hpp>
#include <vector>

#include "idle_strategy.hpp"
#include "triax/error.hpp"
#include "triax/log.hpp"
#include "ucx_memory.hpp"
#include "ucx_settings.hpp"

namespace triax::comm_ucx {

class UcxTransport final : public p2p::Transport {
 public:
  /// Checks that UCX can be opened here with these settings; if `direct`, also that UCX can transfer device memory.
  static Refusals supports(const Settings& settings, bool direct);

  /// `settings` must outlive it.
  UcxTransport(Device& device, const Settings& settings, Log& log);
  ~UcxTransport() override;

  /// Logs the UCX_ variables that UCX does not know: once in a process, on the rank that logs.
  void report_unused_variables();

  const char* plugin() const noexcept override { return "comm-ucx"; }
  const std::string& address() const noexcept override { return address_; }
  /// Ranks with equal text can reach each other through shared memory.
  const std::string& host() const noexcept override { return host_; }
  p2p::Endpoint& connect(std::string_view address, std::string_view host, int rank) override;
  bool direct() const noexcept override { return ucx_memory_.has_value(); }

 protected:
  void post_send(p2p::Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side side,
                 bool sync) noexcept override;
  void post_receive(p2p::Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                    p2p::Side side) noexcept override;
  void post_cancel(p2p::Request& request) noexcept override;
  bool find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept override;
  bool advance() noexcept override { return ucp_worker_progress(worker_) != 0; }
  void idle() noexcept override { idling_.idle(); }
  void wake() noexcept override { idling_.reset(); }
  int extra_polls() const noexcept override { return idling_.extra_polls(); }

 private:
  struct UcxEndpoint final : p2p::Endpoint {
    std::string address;
    ucp_ep_h handle = nullptr;
    UcxTransport* transport = nullptr;
  };

  void open();
  void prepare_device_memory();
  void close() noexcept;
  void begin(p2p::Request& request, void* result) noexcept;
  void end(p2p::Request& request, ucs_status_t status, std::size_t length) noexcept;
  static void on_sent(void* handle, ucs_status_t status, void* user_data);
  static void on_received(void* handle, ucs_status_t status, const ucp_tag_recv_info_t* info, void* user_data);

  Log& log_;
  const Settings& settings_;
  std::string address_, host_;
  std::optional<UcxMemory> ucx_memory_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  std::vector<std::unique_ptr<UcxEndpoint>> endpoints_;
  IdleStrategy idling_;
};

} // namespace triax::comm_ucx
