#include "movement.hpp"

#include <cstring>

namespace comm_ucx {

bool Movement::meets(int member) const noexcept {
  if (member == index()) return false;
  return signature_.kind != Kind::broadcast || signature_.root == index() || signature_.root == member;
}

/// Of `in`.
Movement::Piece Movement::out_piece(int member) const noexcept {
  const std::int64_t bytes = signature_.elements * width_, part = bytes / size();
  if (signature_.kind == Kind::all_gather) return {0, bytes};
  if (signature_.kind == Kind::all_to_all) return {member * part, part};
  return signature_.root == index() ? Piece{0, bytes} : Piece{};
}

/// Of `out`.
Movement::Piece Movement::in_piece(int member) const noexcept {
  const std::int64_t bytes = signature_.elements * width_, part = bytes / size();
  if (signature_.kind == Kind::all_gather) return {member * bytes, bytes};
  if (signature_.kind == Kind::all_to_all) return {member * part, part};
  return signature_.root == member ? Piece{0, bytes} : Piece{};
}

void Movement::launch() noexcept {
  agreed_ = 0;
  for (int k = 1; k < size(); ++k) {
    const int member = (index() + size() - k) % size();
    if (!meets(member)) continue;
    receive_opening(member);
    const Piece piece = in_piece(member);
    if (piece.bytes <= 0) continue;
    receive(request(Use::result_in, 0, member), member, out_ + piece.begin, static_cast<std::size_t>(piece.bytes),
            tag(member, Phase::result));
  }
  for (int k = 1; k < size(); ++k) {
    const int member = (index() + k) % size();
    if (!meets(member)) continue;
    send_opening(member, nullptr, 0);
    const Piece piece = out_piece(member);
    if (piece.bytes <= 0) continue;
    send(request(Use::result_out, 0, member), member, in_ + piece.begin, static_cast<std::size_t>(piece.bytes),
         tag(index(), Phase::result));
  }
  keep_own();
}

void Movement::keep_own() noexcept {
  if (signature_.kind == Kind::broadcast) return;
  const Piece from = out_piece(index()), to = in_piece(index());
  if (from.bytes <= 0 || in_ + from.begin == out_ + to.begin) return;
  std::memcpy(out_ + to.begin, in_ + from.begin, static_cast<std::size_t>(from.bytes));
}

bool Movement::run() noexcept {
  for (; agreed_ < size(); ++agreed_) {
    if (!meets(agreed_)) continue;
    if (request(Use::opening_in, 0, agreed_).open() || !agrees(agreed_)) return false;
  }
  return under_way() == 0;
}

} // namespace comm_ucx
