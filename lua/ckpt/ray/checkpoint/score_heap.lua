--- A heap of rows with a `priority`, the worst one at its root, that moves them as Python's heapq
--- does: which of equal ones stands at the root decides what Ray deletes, no other order will do.

jit.off(true, true)

local score_heap = {}

-- Moves the row at `at` up until its parent is not better.
local function rise(heap, at)
  local row = heap[at]
  while at > 1 do
    local above = math.floor(at / 2)
    if row.priority >= heap[above].priority then break end
    heap[at], at = heap[above], above
  end
  heap[at] = row
end

-- Moves the root down to a leaf, the worse child up each time (of equal ones the right), and from
-- there to its place.
local function sink(heap)
  local row, at, child = heap[1], 1, 2
  while child <= #heap do
    local right = heap[child + 1]
    if right and heap[child].priority >= right.priority then child = child + 1 end
    heap[at], at = heap[child], child
    child = 2 * at
  end
  heap[at] = row
  rise(heap, at)
end

function score_heap.push(heap, row)
  heap[#heap + 1] = row
  rise(heap, #heap)
end

--- Puts a row in and takes the worst one out; that is the row itself if none is worse.
---@return table
function score_heap.push_pop(heap, row)
  local worst = heap[1]
  if not worst or worst.priority >= row.priority then return row end
  heap[1] = row
  sink(heap)
  return worst
end

--- Returns the rows, the worst first; equal ones as they stand in the heap.
---@return table[]
function score_heap.sorted(heap)
  local rows, place = {}, {}
  for i, row in ipairs(heap) do rows[i], place[row] = row, i end
  table.sort(rows, function(a, b)
    if a.priority ~= b.priority then return a.priority < b.priority end
    return place[a] < place[b]
  end)
  return rows
end

return score_heap
