// What the Redis store exports.

export type {
  IoRedisClusterLike,
  IoRedisLike,
  NodeRedisClusterLike,
  NodeRedisLike,
  RedisClient,
} from './client.ts';
export { type RedisStore, type RedisStoreOptions, redisStore } from './store.ts';
