// The door of the Redis store.

export type {
  IoRedisClusterLike,
  IoRedisLike,
  NodeRedisClusterLike,
  NodeRedisLike,
  RedisClient,
} from './client.ts';
export { type RedisStore, type RedisStoreOptions, redisStore } from './store.ts';
