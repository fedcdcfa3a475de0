// SPDX-License-Identifier: Apache-2.0
#include "data_collectives.hpp"

#include <cstring>

namespace triax::p2p {

Movement::Movement(PeerEndpoints& endpoints, const Plan& plan) : CollectiveCall(endpoints), piece_(plan.chunk_bytes) {
  if (!endpoints.transport().staging()) return;
  ins_.reserve(static_cast<std::size_t>(size()));
  outs_.reserve(static_cast<std::size_t>(size()));
}

CollectiveCall::StagingNeed Movement::staging_need(const Collective& of) const noexcept {
  if (endpoints_.transport().direct()) return {true, 0};
  const auto n = static_cast<std::size_t>(size());
  std::size_t bytes = static_cast<std::size_t>(of.elements) * bytes_of(of.dtype);
  if (of.kind == Collective::Kind::all_to_all) bytes /= n;
  const std::size_t outs = same_to_all(of.kind) ? 1 : n - 1, ins = of.kind == Collective::Kind::broadcast ? 1 : n - 1;
  return {false, (outs + ins) * StagedMessage::staging_bytes(bytes, piece_)};
}

bool Movement::exchanges_with(int member) const noexcept {
  if (member == rank()) return false;
  return of().kind != Collective::Kind::broadcast || of().root == rank() || of().root == member;
}

/// Part of `in` for a member.
Movement::Piece Movement::out_piece(int member) const noexcept {
  const std::int64_t bytes = of().elements * width_, part = bytes / size();
  if (of().kind == Collective::Kind::all_gather) return {0, bytes};
  if (of().kind == Collective::Kind::all_to_all) return {member * part, part};
  return of().root == rank() ? Piece{0, bytes} : Piece{};
}

/// Part of `out` from a member.
Movement::Piece Movement::in_piece(int member) const noexcept {
  const std::int64_t bytes = of().elements * width_, part = bytes / size();
  if (of().kind == Collective::Kind::all_gather) return {member * bytes, bytes};
  if (of().kind == Collective::Kind::all_to_all) return {member * part, part};
  return of().root == member ? Piece{0, bytes} : Piece{};
}

void Movement::launch() noexcept {
  agreed_ = 0;
  if (staged()) return launch_flows();
  for (int k = 1; k < size(); ++k) {
    const int member = (rank() + size() - k) % size();
    if (!exchanges_with(member)) continue;
    receive_opening(member);
    const Piece piece = in_piece(member);
    if (piece.bytes <= 0) continue;
    receive(request(Use::result_in, 0, member), member, out_ + piece.begin, static_cast<std::size_t>(piece.bytes),
            tag(member, Phase::result), side());
  }
  for (int k = 1; k < size(); ++k) {
    const int member = (rank() + k) % size();
    if (!exchanges_with(member)) continue;
    send_opening(member, nullptr, 0);
    const Piece piece = out_piece(member);
    if (piece.bytes <= 0) continue;
    send(request(Use::result_out, 0, member), member, in_ + piece.begin, static_cast<std::size_t>(piece.bytes),
         tag(rank(), Phase::result), side());
  }
  keep_own();
}

void Movement::keep_own() noexcept {
  if (of().kind == Collective::Kind::broadcast) return;
  const Piece from = out_piece(rank()), to = in_piece(rank());
  if (from.bytes <= 0 || in_ + from.begin == out_ + to.begin) return;
  const auto bytes = static_cast<std::size_t>(from.bytes);
  if (buffers_ || direct()) return copy_on_device(out_ + to.begin, in_ + from.begin, bytes);
  std::memcpy(out_ + to.begin, in_ + from.begin, bytes);
}

StagedMessage Movement::flow(std::byte* device, std::int64_t bytes, Use use, int first, int last, int source) noexcept {
  StagedMessage made;
  made.device = device;
  made.bytes = static_cast<std::size_t>(bytes);
  made.piece = piece_;
  made.tag = tag(source, Phase::result);
  made.requests = &request(use, 0, first);
  made.stride = size();
  made.first = first;
  made.last = last;
  made.own = rank();
  return made;
}

void Movement::launch_flows() noexcept {
  ins_.clear();
  outs_.clear();
  for (int k = 1; k < size(); ++k) {
    const int before = (rank() + size() - k) % size(), after = (rank() + k) % size();
    if (exchanges_with(before)) {
      receive_opening(before);
      const Piece in = in_piece(before);
      if (in.bytes > 0) ins_.push_back(flow(out_ + in.begin, in.bytes, Use::result_in, before, before, before));
    }
    if (!exchanges_with(after)) continue;
    send_opening(after, nullptr, 0);
    const Piece out = out_piece(after);
    auto* from = const_cast<std::byte*>(in_) + out.begin; // a flow that sends does not write
    if (out.bytes <= 0) continue;
    if (!same_to_all(of().kind)) {
      outs_.push_back(flow(from, out.bytes, Use::result_out, after, after, rank()));
    } else if (outs_.empty()) {
      outs_.push_back(flow(from, out.bytes, Use::result_out, 0, size() - 1, rank()));
    }
  }
  std::byte* buffers = buffers_;
  for (std::vector<StagedMessage>* flows : {&ins_, &outs_}) {
    for (StagedMessage& each : *flows) {
      each.buffers = buffers;
      buffers += StagedMessage::staging_bytes(each.bytes, piece_);
    }
  }
  keep_own();
}

bool Movement::run_flows() noexcept {
  bool all = true;
  for (StagedMessage& each : outs_) all &= push(each);
  for (StagedMessage& each : ins_) all &= pull(each);
  return all && copies_ended();
}

bool Movement::run() noexcept {
  const bool moved = run_flows(); // host memory has no flows
  for (; agreed_ < size(); ++agreed_) {
    if (!exchanges_with(agreed_)) continue;
    if (request(Use::opening_in, 0, agreed_).open() || !agrees(agreed_)) return false;
  }
  return moved && in_progress() == 0;
}

} // namespace triax::p2p
