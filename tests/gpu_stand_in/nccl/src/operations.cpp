// SPDX-License-Identifier: Apache-2.0
#include "operations.hpp"

#include <algorithm>
#include <cstring>

#include "reduction.hpp"

namespace triax::gpu_stand_in {

namespace {

std::string text_of(const CollectiveCall& call) {
  constexpr const char* kNames[] = {"", "ncclAllReduce", "ncclReduceScatter", "ncclAllGather", "ncclBroadcast"};
  return std::string(kNames[static_cast<int>(call.kind)]) + " of " + std::to_string(call.count) + " " +
         name_of(static_cast<ncclDataType_t>(call.type)) + ", reduction " + std::to_string(call.reduction) + ", root " +
         std::to_string(call.root);
}

// Publishes what is called, compares, then moves chunks: each member puts its chunk into the segment, and takes
// from those of all. Between the steps, all members arrive at a barrier.
class CollectiveRun : public Operation {
 public:
  explicit CollectiveRun(const Request& request)
      : Operation(request),
        c_(*request.communicator),
        type_(static_cast<ncclDataType_t>(request.call.type)),
        width_(bytes_of(type_)),
        chunk_(kChunkBytes / width_),
        sum_(kChunkBytes) {
    const auto& call = request.call;
    total_ = call.kind == Collective::kReduceScatter ? call.count * static_cast<std::uint64_t>(c_.size) : call.count;
    c_.own().call = call;
    c_.arrive();
  }

  bool poll() override {
    while (c_.is_passed()) {
      switch (step_) {
        case Step::kCompare:
          compare();
          step_ = total_ == 0 ? Step::kNext : Step::kTake;
          if (total_ != 0) put_chunk();
          break;
        case Step::kTake:
          take_chunk();
          step_ = Step::kNext;
          break;
        case Step::kNext:
          at_ += chunk_;
          if (at_ >= total_) return true;
          put_chunk();
          step_ = Step::kTake;
          continue;
      }
      if (step_ == Step::kNext) c_.arrive();
    }
    return false;
  }

 private:
  enum class Step { kCompare, kTake, kNext };

  void compare() {
    for (int n = 0; n < c_.size; ++n) {
      const CollectiveCall& other = c_.segment.load()->members[n].call;
      if (other == request_.call) continue;
      const std::string why = "members call differently: rank " + std::to_string(c_.rank) + " calls " +
                              text_of(request_.call) + "; rank " + std::to_string(n) + " calls " + text_of(other);
      c_.fail(why);
      throw StreamError(cudaErrorLaunchFailure, c_.text() + ": " + why);
    }
  }
  std::size_t elements() const { return std::min<std::uint64_t>(chunk_, total_ - at_); }

  void put_chunk() {
    if (request_.call.kind != Collective::kBroadcast || c_.rank == request_.call.root) {
      const auto* from = static_cast<const std::byte*>(request_.input) + at_ * width_;
      const std::size_t bytes = elements() * width_;
      std::memcpy(c_.own().data, data_to_read(c_.device, from, bytes, request_.name + ": sendbuff"), bytes);
    }
    c_.arrive();
  }

  void write(std::uint64_t element, const void* from, std::size_t count) {
    auto* to = static_cast<std::byte*>(request_.output) + element * width_;
    const std::size_t bytes = count * width_;
    std::memcpy(data_to_write(c_.device, to, bytes, request_.name + ": recvbuff"), from, bytes);
  }

  void take_chunk() {
    const Member* members = c_.segment.load()->members;
    switch (request_.call.kind) {
      case Collective::kBroadcast:
        return write(at_, members[request_.call.root].data, elements());
      case Collective::kAllGather:
        for (int n = 0; n < c_.size; ++n) write(n * request_.call.count + at_, members[n].data, elements());
        return;
      case Collective::kAllReduce:
        add_up(members);
        return write(at_, sum_.data(), elements());
      case Collective::kReduceScatter:
        add_up(members);
        return write_own_part();
    }
  }

  // From the middle down: an order that a program does not come to by chance, as NCCL's.
  void add_up(const Member* members) {
    const int first = c_.size / 2;
    std::memcpy(sum_.data(), members[first].data, elements() * width_);
    for (int n = 1; n < c_.size; ++n) {
      reduce(sum_.data(), members[(first + c_.size - n) % c_.size].data, elements(), type_,
             static_cast<ncclRedOp_t>(request_.call.reduction));
    }
  }

  void write_own_part() {
    const std::uint64_t begin = c_.rank * request_.call.count, end = begin + request_.call.count;
    const std::uint64_t low = std::max(at_, begin), high = std::min(at_ + elements(), end);
    if (low < high) write(low - begin, sum_.data() + (low - at_) * width_, high - low);
  }

  Communicator& c_;
  const ncclDataType_t type_;
  const std::size_t width_, chunk_; // bytes of an element; elements of a chunk
  std::uint64_t total_ = 0, at_ = 0;
  Step step_ = Step::kCompare;
  std::vector<std::byte> sum_;
};

// As a copy between devices, a send takes along which bytes were written.
void copy_state(const std::byte* address, std::uint8_t* state, std::size_t bytes, bool to_memory) {
  const auto found = find_memory(address);
  if (!found || found->allocation.host) {
    if (!to_memory) std::memset(state, 1, bytes);
    return;
  }
  std::uint8_t* own = memory_of(found->device).written(reinterpret_cast<std::uint64_t>(address));
  to_memory ? std::memcpy(own, state, bytes) : std::memcpy(state, own, bytes);
}

// Ends when the receiver has taken the last chunk.
class SendRun : public Operation {
 public:
  explicit SendRun(const Request& request) : Operation(request), c_(*request.communicator) {}
  bool poll() override {
    Channel& channel = c_.segment.load()->channels[c_.rank][request_.peer];
    while (channel.taken.load(std::memory_order_acquire) == c_.sent[request_.peer]) {
      if (at_ == request_.input_bytes) return true;
      const std::size_t bytes = std::min(kChunkBytes, request_.input_bytes - at_);
      const auto* from = static_cast<const std::byte*>(request_.input) + at_;
      copy_state(from, channel.written, bytes, false);
      std::memcpy(channel.data, data_to_send(from, bytes), bytes);
      channel.bytes = bytes;
      channel.message_bytes = request_.input_bytes;
      channel.type = request_.call.type;
      at_ += bytes;
      channel.posted.store(++c_.sent[request_.peer], std::memory_order_release);
    }
    return false;
  }

 private:
  const std::byte* data_to_send(const std::byte* from, std::size_t bytes) const {
    const auto found = find_memory(from);
    const auto at = reinterpret_cast<std::uint64_t>(from);
    if (found && bytes <= found->allocation.bytes - (at - found->allocation.address)) return found->data;
    throw StreamError(cudaErrorIllegalAddress, "ncclSend: sendbuff: " + std::to_string(bytes) + " bytes at " +
                                                   describe_memory(from) + " are not in one allocation");
  }
  Communicator& c_;
  std::size_t at_ = 0;
};

class ReceiveRun : public Operation {
 public:
  explicit ReceiveRun(const Request& request) : Operation(request), c_(*request.communicator) {}
  bool poll() override {
    Channel& channel = c_.segment.load()->channels[request_.peer][c_.rank];
    while (at_ < request_.output_bytes) {
      if (channel.posted.load(std::memory_order_acquire) == c_.received[request_.peer]) return false;
      if (channel.message_bytes != request_.output_bytes) {
        refuse(std::to_string(channel.message_bytes) + " bytes", std::to_string(request_.output_bytes) + " bytes");
      }
      if (channel.type != request_.call.type) refuse(type_name(channel.type), type_name(request_.call.type));
      auto* to = static_cast<std::byte*>(request_.output) + at_;
      std::memcpy(data_to_write(c_.device, to, channel.bytes, "ncclRecv: recvbuff"), channel.data, channel.bytes);
      copy_state(to, channel.written, channel.bytes, true);
      at_ += channel.bytes;
      channel.taken.store(++c_.received[request_.peer], std::memory_order_release);
    }
    return true;
  }

 private:
  static std::string type_name(int type) { return name_of(static_cast<ncclDataType_t>(type)); }
  [[noreturn]] void refuse(const std::string& sent, const std::string& received) {
    const std::string why = "rank " + std::to_string(request_.peer) + " sends " + sent + ", and rank " +
                            std::to_string(c_.rank) + " receives " + received;
    c_.fail(why);
    throw StreamError(cudaErrorLaunchFailure, c_.text() + ": " + why);
  }
  Communicator& c_;
  std::size_t at_ = 0;
};

} // namespace

std::unique_ptr<Operation> make_operation(const Request& request) {
  if (request.is_collective) return std::make_unique<CollectiveRun>(request);
  if (request.sends) return std::make_unique<SendRun>(request);
  return std::make_unique<ReceiveRun>(request);
}

} // namespace triax::gpu_stand_in
