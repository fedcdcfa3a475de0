// SPDX-License-Identifier: Apache-2.0
// Transport of one rank over MPI messages in host memory. It uses Isend, Issend, Irecv, Testsome, Iprobe and Cancel,
// but no collectives of MPI: these add in no fixed order (README.md), cannot be cancelled, and have no deadline.
//
// Threads: the rank's main thread only. Blocking: the constructor, until all ranks have called it; the destructor, for
// a bounded time, so that sent messages leave. Errors: the constructor and connect() throw. MPI does not report a lost
// peer; the job server does, when the peer's heartbeats stop.
//
// MPI moves the messages of all communicators in every call. When one transport has retired, its buffers may be freed,
// so no other transport of the process may call MPI any more: all of them retire.
#pragma once

#include <mpi.h>

#include <deque>
#include <memory>
#include <string>
#include <triax/p2p/transport.hpp>
#include <vector>

#include "mpi_process.hpp"
#include "tag_layout.hpp"

namespace triax::comm_mpi {

class MpiTransport final : public p2p::Transport {
 public:
  /// `polls`: how often to poll again before progress() returns.
  MpiTransport(Device& device, int world, std::size_t staging_bytes, int polls);
  ~MpiTransport() override;

  const char* plugin() const noexcept override { return "comm-mpi"; }
  const std::string& address() const noexcept override { return address_; }
  const std::string& host() const noexcept override { return host_; }
  p2p::TagLimits limits() const noexcept override { return tags_.limits(); }
  p2p::Endpoint& connect(std::string_view address, std::string_view host, int rank) override;

 protected:
  void post_send(p2p::Request& request, p2p::Endpoint& endpoint, p2p::Tag tag, p2p::Side side,
                 bool sync) noexcept override;
  void post_receive(p2p::Request& request, p2p::Endpoint& from, void* data, std::size_t bytes, p2p::Tag tag,
                    p2p::Side side) noexcept override;
  void post_cancel(p2p::Request& request) noexcept override;
  bool find(p2p::Endpoint& from, p2p::Tag tag, p2p::Tag& found, std::size_t& bytes) noexcept override;
  bool advance() noexcept override;
  void abandon() noexcept override { MpiProcess::abandon(); }
  int extra_polls() const noexcept override { return polls_; }

 private:
  struct MpiEndpoint final : p2p::Endpoint {
    int rank = 0;
  };
  struct Operation {
    p2p::Request* request = nullptr;
    std::byte* packed = nullptr; // two segments as one message, in a buffer from free_packed_
  };

  /// The rank at an endpoint that connect() has made.
  static int rank_of(const p2p::Endpoint& endpoint) noexcept;
  Operation& take_operation() noexcept;
  std::byte* take_packed() noexcept;
  void add_packed(std::size_t count);
  /// Calls post(count, type, handle).
  template <class Post>
  void begin(p2p::Request& request, std::byte* packed, std::size_t bytes, const Post& post) noexcept;
  void end(Operation& operation, int code, const MPI_Status& status) noexcept;
  void finish(Operation& operation, p2p::Status status, std::size_t length, const char* why) noexcept;
  void remove(std::size_t index) noexcept;
  void close() noexcept;

  const int polls_;
  const MpiProcess process_;
  const TagLayout tags_;
  std::string address_, host_;
  std::vector<std::unique_ptr<MpiEndpoint>> endpoints_;
  std::deque<Operation> operations_; // does not move its elements
  std::vector<Operation*> free_;
  std::vector<std::unique_ptr<std::byte[]>> packed_; // buffers of kMaxTwoSegments
  std::vector<std::byte*> free_packed_;
  // In progress: handles_[i] belongs to operations_of_[i].
  std::vector<MPI_Request> handles_;
  std::vector<Operation*> operations_of_;
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  struct Ended {
    Operation* operation;
    int code;
    MPI_Status status;
  };
  std::vector<Ended> ended_;
};

} // namespace triax::comm_mpi
