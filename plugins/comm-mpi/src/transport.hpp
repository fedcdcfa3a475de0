// SPDX-License-Identifier: Apache-2.0
// MPI's messages of one rank, in host memory. Of MPI it uses Isend, Issend, Irecv, Testsome, Iprobe and Cancel on
// MPI_COMM_WORLD: its collectives add in no fixed order (docs in README.md), cannot be cancelled, and have no deadline.
//
// Threads: the rank's main thread only. Blocking: the destructor, for a bounded time, so that sent messages leave.
// Errors: the constructor and connect() throw. MPI does not tell that a peer was lost: its heartbeat does.
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
  int extra_polls() const noexcept override { return polls_; }

 private:
  struct MpiEndpoint final : p2p::Endpoint {
    int rank = 0;
  };
  /// A request's MPI operations: one, or one per GiB, because MPI counts in int.
  struct Operation {
    p2p::Request* request = nullptr;
    int open = 0; // MPI operations
    p2p::Status status = p2p::Status::ok;
    std::size_t length = 0;
    const char* why = nullptr;
    std::unique_ptr<std::byte[]> packed; // two pieces as one message
  };

  Operation& begin(p2p::Request& request) noexcept;
  template <class Post>
  void post(Operation& operation, std::size_t bytes, const Post& post) noexcept;
  const std::byte* packed(Operation& operation) noexcept;
  void end_one(Operation& operation, int code, const MPI_Status& status) noexcept;
  void finish(Operation& operation) noexcept;
  void remove(std::size_t index) noexcept;
  void close() noexcept;

  const int polls_;
  const MpiProcess process_;
  const TagLayout tags_;
  std::string address_, host_;
  std::vector<std::unique_ptr<MpiEndpoint>> endpoints_;
  std::deque<Operation> operations_; // does not move its elements
  std::vector<Operation*> free_;
  // In progress: operations_of_[i] is whose handles_[i] is.
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
