-- Tables that grow and shrink, strings, closures and coroutines under both collectors.
local steps = tonumber(arg[1])

local function work(seed)
  local state, kept, sum = seed, {}, 0
  local function random(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n
  end
  for n = 1, steps do
    local slot = random(3000)
    if n % 3 == 0 then
      kept[slot] = string.rep(tostring(n), random(40))
    elseif n % 3 == 1 then
      local list = {}
      for i = 1, random(30) do list[i] = { i, function() return i + n end } end
      kept[slot] = list
    else
      local found = kept[slot]
      if type(found) == "string" then
        sum = (sum * 31 + #found:gsub("%d", "%0%0")) % 1000003
      elseif found then
        for _, pair in ipairs(found) do sum = (sum + pair[1] * pair[2]()) % 1000003 end
      end
      kept[slot] = nil
    end
    if n % 5000 == 0 then coroutine.yield(sum) end
  end
  return sum
end

for _, mode in ipairs { "incremental", "generational" } do
  collectgarbage(mode)
  local workers, told = {}, {}
  for n = 1, 3 do workers[n] = coroutine.wrap(function() work(n) end) end
  for turn = 1, steps // 5000 do
    for n, worker in ipairs(workers) do told[#told + 1] = worker(n) end
  end
  collectgarbage()
  local sum = 0
  for _, one in ipairs(told) do sum = (sum * 7 + one) % 1000003 end
  print(mode, #told, sum)
end
